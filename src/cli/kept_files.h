// Files that one run keeps for the next, in the user's cache directory: ours alone. A file that is
// another user's, or that others may write to, is none. What cannot be written is not kept, which
// nobody needs to know.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/mapped_file.h"
#include "base/packed.h"

namespace cohabit {

// The file of one kind for the environment with this prefix: below XDG_CACHE_HOME if it is
// absolute, else ~/.cache, as the base directory specification has it. Empty: there is no place, or
// the user wants none (COHABIT_NO_CACHE).
std::string kept_path(const std::string& kind, const std::string& prefix);
// SHA-256, hexadecimal.
std::string digest_of_text(std::string_view text);
// Which program this is, and whose: another build may do otherwise.
void pack_ourselves(Packer& packer);

// A file of at most `largest` bytes, open for reading, which the caller closes. Negative: it is not
// there, or not ours alone.
int open_kept(const std::string& path, uint64_t largest);
// What replace_kept wrote with this format, as it lies in the file.
struct KeptText {
  MappedFile map;
  std::string_view text;  // in the map
};
// Nothing: it is not there, not ours alone, of another format, or damaged.
std::optional<KeptText> read_kept(const std::string& path, std::string_view format,
                                  uint64_t largest);
// False too: the file would have more than `largest` bytes.
bool replace_kept(const std::string& path, std::string_view format, std::string_view text,
                  uint64_t largest, uint64_t most);
// Written under another name, then put in its place; its directory is made. `write` gets the
// descriptor; false: it could not be written. Then the oldest files of the directory go, until all
// that are left have `most` bytes together.
bool replace_kept(const std::string& path, uint64_t most, const std::function<bool(int)>& write);

}  // namespace cohabit
