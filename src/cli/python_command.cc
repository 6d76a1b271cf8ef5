#include "cli/python_command.h"

#include <cstdlib>
#include <filesystem>
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

// Options end at the program's file, or with -c or -m.
struct Options {
  size_t program = 0;  // place of that word
  bool safe_path = false;
};

Options read_options(const std::vector<std::string>& command) {
  Options options;
  const char* set = std::getenv("PYTHONSAFEPATH");
  options.safe_path = set && *set;
  size_t at = 1;
  for (; at < command.size(); at++) {
    const std::string& word = command[at];
    if (word == "-c" || word == "-m" || word == "-" || !word.starts_with('-')) break;
    if (word == "-P" || word == "-I") options.safe_path = true;
    if (word == "-W" || word == "-X" || word == "--check-hash-based-pycs") at++;
  }
  options.program = at;
  return options;
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
  const Options options = read_options(command);
  const size_t at = options.program;
  if (at >= command.size() || command[at] == "-") return std::nullopt;
  if (command[at] != "-c" && command[at] != "-m")
    return with_arguments(file_program(command[at], options.safe_path), at + 1);
  if (at + 1 >= command.size()) return std::nullopt;
  python::PlanRequest program;
  (command[at] == "-c" ? program.code : program.run_module) = command[at + 1];
  if (!options.safe_path) program.directory = current_directory();
  return with_arguments(program, at + 2);
}

}  // namespace cohabit
