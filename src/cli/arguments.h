// What several commands read from their arguments and from our own process.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace cohabit {

// "a,b.c": names of Python modules.
Result<std::vector<std::string>> read_module_list(const std::string& text);
// Our environment variables; none below another root, which is another machine.
std::map<std::string, std::string> own_variables(const std::string& root);
Result<void> print_report(const std::string& text);
bool wants_colour();

}  // namespace cohabit
