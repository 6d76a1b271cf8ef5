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

// The Python that a command starts.
struct StartedPython {
  std::string interpreter;  // path; empty: there is none
  // What stands of the command from the interpreter, or the script that names one, on: "python
  // app.py" of "timeout 5 python app.py". Empty: it is not told by words of the command.
  std::string path;
  std::vector<std::string> command;
  std::string named_in;  // for people: "timeout", "run.sh"; empty: the command is it
};
// The command itself; else what it starts in turn (env, nice, timeout, mpirun, ...): the first word
// that is an interpreter, or a script of one; else the one that a shell's text or a makefile starts
// (shell_text.h), on its command line or in its file; else that of the active environment.
StartedPython find_started_python(const std::string& path, const std::vector<std::string>& command);
// What among the words starts the rest with an environment of its own ("env -i", "sudo"), so that
// nothing that is set here reaches it. Empty: nothing.
std::string environment_is_dropped_by(const std::vector<std::string>& command);

// The program, where the command says which: `python [OPTIONS] FILE`, `python -c CODE`,
// `python -m MODULE`, or a script that names its interpreter.
std::optional<python::PlanRequest> read_python_program(const StartedPython& started);
// Whether the program is one that is installed in the environment, or a module of Python's own
// (torchrun, `-m pytest`, `-m cProfile`): it may run code that its arguments or the current
// directory name.
bool runs_code_of_others(const StartedPython& started, const python::PlanRequest& program);
// What its arguments name of that code, each as a program of its own: files that end in ".py", and
// modules that are there ("app:application", as servers take it). A few at most.
std::vector<python::PlanRequest> programs_named_in(const StartedPython& started,
                                                   const std::vector<std::string>& arguments);

}  // namespace cohabit
