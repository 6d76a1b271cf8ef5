// Names of libraries that a library has as strings: what it may hand to dlopen.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "facts/elf/object.h"

namespace cohabit::elf {

// The NUL-terminated strings in read-only data that look like the file name of a library:
// "libx.so", "libx-y.so.3", no directory. Each once, in the order of the file. Its own soname and
// its DT_NEEDED entries are not among them: they stand in another table.
std::vector<std::string> library_names(const Object& object, Bytes file);

}  // namespace cohabit::elf
