// What this process has really loaded. In a file of its own: <link.h> defines as macros the names
// that facts/elf/format.h defines as constants.
#pragma once

#include <set>
#include <string>

std::set<std::string> really_loaded();  // absolute paths, links resolved
