// What a bundle does not hold is neither there nor missing (touch_log.h).
#pragma once

#include <cerrno>
#include <string>
#include <string_view>

#include "base/touch_log.h"
#include "base/tree.h"

namespace cohabit {

// The error of asking for it, in place of ENOENT, and the words in which the simulated loader tells
// it.
inline constexpr int kNotInBundle = ENODATA;
inline constexpr std::string_view kNotInBundleText = "not in the bundle";

// Of this machine all files are there, below a root nothing is noted.
inline bool is_of_bundle(const Tree& tree) {
  return tree.has_log() && !tree.root().empty();
}

// What a bundle tells besides its files stands among the extracts of its log, as those of no file,
// in order: paths without links that are known not to be there, and directories of which all names
// are known.
inline constexpr const char* kKnownAbsent = "absent";
inline constexpr const char* kKnownListed = "listed";
bool knows_names(const TouchLog& log, const std::string& directory);
bool knows_absence(const TouchLog& log, const std::string& place);

// Whether the bundle has the file, and not its content.
bool lacks_content(const Tree& tree, const std::string& path);

}  // namespace cohabit
