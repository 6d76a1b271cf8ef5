// What a command line of Python runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "imports/plan.h"

namespace cohabit {

// The interpreter that this program is, or that its #! line names; else that of the active
// environment. Nothing where there is none.
std::optional<std::string> find_python_of(const std::string& path);

// The program, where the command says which: `python [OPTIONS] FILE`, `python -c CODE`,
// `python -m MODULE`, or a script that names its interpreter. `path`: of the command.
std::optional<python::PlanRequest> read_python_program(const std::string& path,
                                                       const std::vector<std::string>& command);

}  // namespace cohabit
