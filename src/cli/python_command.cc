#include "cli/python_command.h"

#include "base/read_file.h"
#include "base/tree.h"
#include "facts/python/interpreter.h"

namespace cohabit {
namespace {

bool is_script(const std::string& path) {
  constexpr size_t kLongestScript = 4 << 20;  // an interpreter is larger, and need not be read
  const auto text = read_file(path, kLongestScript);
  return text && text->starts_with("#!");
}

std::optional<PythonProgram> program_in(const std::string& file) {
  auto text = read_file(file);
  if (!text) return std::nullopt;
  return PythonProgram{std::move(*text), file};
}

// The place of the first word that is no option, or of -c or -m.
size_t first_program_word(const std::vector<std::string>& command) {
  size_t at = 1;
  for (; at < command.size(); at++) {
    const std::string& word = command[at];
    if (word == "-c" || word == "-m" || word == "-" || !word.starts_with('-')) break;
    if (word == "-W" || word == "-X" || word == "--check-hash-based-pycs") at++;
  }
  return at;
}

}  // namespace

std::optional<std::string> find_python_of(const std::string& path) {
  const Tree tree("");
  if (auto python = find_interpreter(tree, path)) return python->executable;
  if (auto python = find_interpreter(tree, "")) return python->executable;
  return std::nullopt;
}

std::optional<PythonProgram> read_python_program(const std::string& path,
                                                 const std::vector<std::string>& command) {
  const Tree tree("");
  if (!find_interpreter(tree, path)) return std::nullopt;
  if (is_script(path)) return program_in(path);
  const size_t at = first_program_word(command);
  if (at >= command.size() || command[at] == "-") return std::nullopt;
  if (command[at] == "-c")
    return at + 1 < command.size() ? std::optional(PythonProgram{command[at + 1], ""})
                                   : std::nullopt;
  if (command[at] == "-m")
    return at + 1 < command.size()
               ? std::optional(PythonProgram{"import " + command[at + 1] + "\n", ""})
               : std::nullopt;
  return program_in(command[at]);
}

}  // namespace cohabit
