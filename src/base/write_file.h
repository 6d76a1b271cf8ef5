// A file that the user asked for, written whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace cohabit {

// "-" is standard output. A regular file is written under another name beside it and then put in
// its place, so that a full disk leaves what stood there; pipes and devices are written to
// directly.
Result<void> write_file(const std::string& path, std::string_view text);

// Whether that can be tried: the error that it would have where the place is no file's or not ours.
// For what is written after long work.
Result<void> check_can_write(const std::string& path);

}  // namespace cohabit
