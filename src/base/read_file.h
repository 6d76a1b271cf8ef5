// A file that the user named, whole: a regular file, a pipe, /dev/stdin.
#pragma once

#include <string>

#include "base/result.h"

namespace cohabit {

// Refuses what has more than `limit` bytes: /dev/zero has no end.
Result<std::string> read_file(const std::string& path, size_t limit = size_t{512} << 20);

}  // namespace cohabit
