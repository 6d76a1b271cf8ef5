#include "cli/python_command.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/paths.h"
#include "base/read_file.h"
#include "base/tree.h"
#include "facts/python/interpreter.h"

namespace cohabit {
namespace {

namespace fs = std::filesystem;

bool is_script(const std::string& path) {
  constexpr size_t kLongestScript = 4 << 20;  // an interpreter is larger, and need not be read
  const auto text = read_file(path, kLongestScript);
  return text && text->starts_with("#!");
}

std::string current_directory() {
  std::error_code error;
  return fs::current_path(error).string();
}

// The first entry of sys.path is the directory of the file, links resolved.
std::optional<python::PlanRequest> file_program(const std::string& file, bool safe_path) {
  std::error_code error;
  const std::string real = fs::canonical(file, error).string();
  if (error) return std::nullopt;
  python::PlanRequest program;
  program.code_file = fs::absolute(file, error).string();
  if (!safe_path) program.directory = directory_of(real);
  return program;
}

}  // namespace

PythonCommand split_python_command(const std::vector<std::string>& command) {
  constexpr std::string_view kTakesValue = "--check-hash-based-pycs";
  PythonCommand found;
  for (size_t at = 1; at < command.size(); at++) {
    const std::string& word = command[at];
    if (word == kTakesValue) at++;
    if (word.starts_with("--")) continue;
    found.program = word;
    found.arguments = at + 1;
    found.kind = word == "-" ? PythonCommand::kStandardInput : PythonCommand::kScript;
    if (word == "-" || !word.starts_with('-')) return found;
    const size_t letter = std::min(word.find_first_of("cmWX", 1), word.size());
    if (word.substr(0, letter).find_first_of("PI") != word.npos) found.safe_path = true;
    if (letter == word.size()) continue;
    const bool is_last = letter + 1 == word.size();
    if (is_last && ++at >= command.size()) break;
    if (word[letter] == 'W' || word[letter] == 'X') continue;
    found.kind = word[letter] == 'c' ? PythonCommand::kCode : PythonCommand::kModule;
    found.program = is_last ? command[at] : word.substr(letter + 1);
    found.arguments = at + 1;
    return found;
  }
  found.kind = PythonCommand::kNothing;
  return found;
}

std::optional<std::string> find_python_of(const std::string& path) {
  const Tree tree("");
  if (auto python = find_interpreter(tree, path)) return python->executable;
  if (auto python = find_interpreter(tree, "")) return python->executable;
  return std::nullopt;
}

std::optional<python::PlanRequest> read_python_program(const std::string& path,
                                                       const std::vector<std::string>& command) {
  const Tree tree("");
  if (!find_interpreter(tree, path)) return std::nullopt;
  const auto with_arguments = [&](std::optional<python::PlanRequest> program, size_t after) {
    if (program && after < command.size())
      program->arguments.assign(command.begin() + static_cast<ptrdiff_t>(after), command.end());
    return program;
  };
  if (is_script(path)) return with_arguments(file_program(path, false), 1);
  const PythonCommand found = split_python_command(command);
  const char* set = std::getenv("PYTHONSAFEPATH");
  const bool safe_path = found.safe_path || (set && *set);
  if (found.kind == PythonCommand::kNothing || found.kind == PythonCommand::kStandardInput)
    return std::nullopt;
  if (found.kind == PythonCommand::kScript)
    return with_arguments(file_program(found.program, safe_path), found.arguments);
  python::PlanRequest program;
  (found.kind == PythonCommand::kCode ? program.code : program.run_module) = found.program;
  if (!safe_path) program.directory = current_directory();
  return with_arguments(program, found.arguments);
}

}  // namespace cohabit
