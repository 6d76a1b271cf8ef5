// Processes of this user, by the environment that they were started with.
#pragma once

#include <sys/types.h>

#include <string_view>
#include <vector>

namespace cohabit {

// Those with a variable whose text, "NAME=VALUE" and a zero byte, begins so. Processes of others,
// whose environment is not shown, are none.
std::vector<pid_t> find_processes(std::string_view variable);

}  // namespace cohabit
