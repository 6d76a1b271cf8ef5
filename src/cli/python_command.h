// What a command line of Python runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "imports/plan.h"

namespace cohabit {

// What the options of a Python end at, as its own reading of them goes: they may stand together
// (-Bc), -W and -X take a value, and what comes first of -c, -m, - and a script is the program.
struct PythonCommand {
  enum Kind { kNothing, kCode, kModule, kScript, kStandardInput };
  Kind kind = kNothing;
  std::string program;     // the code, the module's name, the script
  size_t arguments = 0;    // where those of the program begin
  bool safe_path = false;  // -P or -I
};
PythonCommand split_python_command(const std::vector<std::string>& command);

// The interpreter that this program is, or that its #! line names; else that of the active
// environment. Nothing where there is none.
std::optional<std::string> find_python_of(const std::string& path);

// The program, where the command says which: `python [OPTIONS] FILE`, `python -c CODE`,
// `python -m MODULE`, or a script that names its interpreter. `path`: of the command.
std::optional<python::PlanRequest> read_python_program(const std::string& path,
                                                       const std::vector<std::string>& command);

}  // namespace cohabit
