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
// For the argument parser: why this is no list of names; empty: it is one.
std::string refuse_empty_list(const std::string& text);
// Likewise why this is no value: an unset variable in a script must not change what is examined.
std::string refuse_empty(const std::string& text);
Result<void> print_report(const std::string& text);
bool wants_colour();
// Of a command that failed: says why on stderr; 2.
int exit_code_of(const Result<int>& result);
// As a shell gives it: 128 + n when signal n ended the process. `status` is of wait().
int exit_code_of_process(int status);

}  // namespace cohabit
