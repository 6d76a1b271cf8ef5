// The libraries of runtime/, as they are installed beside the command.
#pragma once

#include <string>

#include "base/result.h"

namespace cohabit {

// What the environment variable `variable` names, else `name` beside the running executable (build
// tree), or in ../lib/cohabit of it (installed, Python package).
Result<std::string> find_runtime_library(const std::string& name, const char* variable);

// A path of the library that LD_PRELOAD can hold: it has no way to write one with a space, a colon
// or a "$", so there it is a link, made in a directory of the user's own that stays.
Result<std::string> preloadable_path(const std::string& library);

}  // namespace cohabit
