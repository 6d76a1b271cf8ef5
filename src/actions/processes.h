// Processes of this user: by the environment that they were started with, and by what they have
// open.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace cohabit {

// Those with a variable whose text, "NAME=VALUE" and a zero byte, begins so. Processes of others,
// whose environment is not shown, are none.
std::vector<pid_t> find_processes(std::string_view variable);
// Others than this one that have this very file open.
std::vector<pid_t> find_users_of(const std::string& file);
// "process 77 (python -m pip install x)", for people; shortened, without what a terminal would
// obey.
std::string describe_process(pid_t process);

}  // namespace cohabit
