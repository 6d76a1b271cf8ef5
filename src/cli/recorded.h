// A run that really happened: made now, in a child process, or read from a trace.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/program.h"
#include "facts/python/interpreter.h"
#include "facts/trace/trace.h"

namespace cohabit {

// The imports of `python -c "import a; import b"`: what a trace was asked to do. Nothing, if only
// the running code knew (a script, -m, exec of a variable, functions that it may call).
std::vector<std::string> imports_of_command(const std::vector<std::string>& arguments);

// "python -m pkg" or "python app.py", without its arguments, of a Python that was started so.
std::string title_of_command(const std::vector<std::string>& arguments);

// Imports run in an empty directory, a program in the current one. What they print goes to stderr.
Result<Trace> record_imports(const Interpreter& python, const std::vector<std::string>& imports);
Result<Trace> record_program(const Interpreter& python, const Program& program);

}  // namespace cohabit
