#include "cli/recorded.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "actions/trace.h"
#include "base/say.h"
#include "base/scratch.h"
#include "cli/python_command.h"
#include "findings/environment.h"
#include "imports/imported_names.h"

namespace cohabit {
namespace {

Result<Trace> record(const std::string& directory, const std::vector<std::string>& command) {
  RecordOptions options;
  options.working_directory = directory;
  options.standard_output = STDERR_FILENO;
  // Examining leaves no __pycache__ behind, neither do the Pythons that it starts.
  options.environment = {"PYTHONDONTWRITEBYTECODE=1"};
  return record_trace(options, command);
}

}  // namespace

std::vector<std::string> imports_of_command(const std::vector<std::string>& arguments) {
  const PythonCommand command = split_python_command(arguments);
  if (command.kind != PythonCommand::kCode) return {};
  const python::ImportedNames found = python::imported_names(python::Syntax(command.program));
  if (!found.complete || !found.all_run) return {};
  std::vector<std::string> names;
  for (const python::ImportedName& one : found.names) names.push_back(one.module);
  return names;
}

std::string title_of_command(const std::vector<std::string>& arguments) {
  const PythonCommand command = split_python_command(arguments);
  switch (command.kind) {
    case PythonCommand::kScript:
    case PythonCommand::kStandardInput:
      return "python " + shell_word(command.program);
    case PythonCommand::kModule:
      return "python -m " + shell_word(command.program);
    default:
      return "";
  }
}

Result<Trace> record_imports(const Interpreter& python, const std::vector<std::string>& imports) {
  std::string code;
  for (const std::string& name : imports) code += (code.empty() ? "import " : "; import ") + name;
  say("running {} -c '{}'\n", python.executable, code);
  const ScratchDirectory directory(
      "cohabit-doctor");  // files of the current one would shadow modules
  return record(directory.path(), {python.executable, "-c", code});
}

Result<Trace> record_program(const Interpreter& python, const Program& program) {
  if (program.notebook)
    return fail(
        "a notebook is read, not run: leave --trace out, or record the kernel with "
        "`cohabit trace`");
  say("running {} of {}\n", program.title, python.prefix);
  std::vector<std::string> command = {python.executable};
  if (program.module.empty())
    command.push_back(program.file);
  else
    command.insert(command.end(), {"-m", program.module});
  command.insert(command.end(), program.arguments.begin(), program.arguments.end());
  return record("", command);
}

}  // namespace cohabit
