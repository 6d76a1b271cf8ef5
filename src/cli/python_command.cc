#include "cli/python_command.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "actions/launch.h"
#include "base/paths.h"
#include "base/read_file.h"
#include "base/rows.h"
#include "base/text.h"
#include "base/tree.h"
#include "cli/arguments.h"
#include "facts/python/interpreter.h"
#include "imports/finder.h"

namespace cohabit {
namespace {

namespace fs = std::filesystem;

bool is_script(const std::string& path) {
  constexpr size_t kLongestScript = 4 << 20;  // an interpreter is larger, and need not be read
  const auto text = read_file(path, kLongestScript);
  return text && text->starts_with("#!");
}

// "/env/bin/python -c" in a file of a shell. What comes out of a pipe is the command's to read.
std::optional<std::string> script_of(const Tree& tree, const std::string& path) {
  constexpr uint64_t kLongestScript = 256 << 10;
  std::error_code error;
  auto text = tree.read_text(fs::absolute(path, error).string(), kLongestScript);
  if (text && text->find('\0') != std::string::npos) text.reset();
  return text;
}

// These choose the environment themselves: a bare "python" behind them is not that of PATH.
bool starts_in_its_environment(std::string_view name) {
  static constexpr std::string_view kNames[] = {"uv",    "uvx",    "poetry", "pipenv", "pdm",
                                                "hatch", "rye",    "conda",  "mamba",  "micromamba",
                                                "pixi",  "docker", "podman", "ssh",    "srun"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// The interpreter of a word of a command and the file that the word is.
std::optional<std::pair<std::string, std::string>> interpreter_of_word(const Tree& tree,
                                                                       const std::string& word) {
  if (word.empty() || word[0] == '-') return std::nullopt;
  const auto path = find_command(word);
  if (!path || ::access(path->c_str(), X_OK) != 0) return std::nullopt;
  const auto status = tree.stat(fs::absolute(*path).lexically_normal().string());
  if (!status || !status->is_regular()) return std::nullopt;
  auto python = find_interpreter(tree, *path);
  if (!python) return std::nullopt;
  return std::pair(python->executable, *path);
}

std::string without_comments(const std::string& text) {
  std::string rest;
  for (const std::string_view line : split(text, '\n'))
    if (!trim(line).starts_with('#')) rest.append(line).append("\n");
  return rest;
}

// The first word of a shell's text that names one, by a path if there is such a word: what stands
// in it is not known to be run.
std::optional<std::string> interpreter_in_text(const Tree& tree, const std::string& text) {
  if (text.find("python") == std::string::npos) return std::nullopt;
  constexpr std::string_view kBetween = " \t\n;|&()'\"`$={}";
  std::vector<std::string> paths, names;
  const std::string code = without_comments(text);
  for (size_t begin = 0; begin < code.size();) {
    const size_t end = std::min(code.find_first_of(kBetween, begin), code.size());
    std::string word = code.substr(begin, end - begin);
    begin = end + 1;
    if (last_part(word).starts_with("python"))
      (word.find('/') == word.npos ? names : paths).push_back(std::move(word));
  }
  for (const auto* words : {&paths, &names})
    for (const std::string& word : *words)
      if (auto python = interpreter_of_word(tree, word)) return python->first;
  return std::nullopt;
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

StartedPython find_started_python(const std::string& path,
                                  const std::vector<std::string>& command) {
  const Tree tree("");
  if (auto python = find_interpreter(tree, path)) return {python->executable, path, command, ""};
  const bool brings_environment = starts_in_its_environment(last_part(path));
  for (size_t at = 1; at < command.size(); at++) {
    if (brings_environment && command[at].find('/') == std::string::npos) continue;
    if (auto python = interpreter_of_word(tree, command[at]))
      return {python->first,
              python->second,
              {command.begin() + static_cast<ptrdiff_t>(at), command.end()},
              last_part(path)};
  }
  if (!brings_environment) {
    for (size_t at = 1; at < command.size(); at++)
      if (auto python = interpreter_in_text(tree, command[at]))
        return {*python, "", {}, last_part(path)};
    for (const std::string& file : command)
      if (const auto text = script_of(tree, file == command[0] ? path : file))
        if (auto python = interpreter_in_text(tree, *text))
          return {*python, "", {}, last_part(file)};
  }
  if (auto python = find_interpreter(tree, "")) return {python->executable, "", {}, ""};
  return {};
}

std::optional<python::PlanRequest> read_python_program(const StartedPython& started) {
  if (started.command.empty()) return std::nullopt;
  const std::string& path = started.path;
  const std::vector<std::string>& command = started.command;
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

bool runs_code_of_others(const StartedPython& started, const python::PlanRequest& program) {
  const Tree tree("");
  const auto interpreter = find_interpreter(tree, started.interpreter);
  if (!interpreter) return false;
  std::string file = program.code_file;
  if (!program.run_module.empty()) {
    python::Finder finder(tree, *interpreter, program.directory);
    const auto module = finder.find_dotted(program.run_module);
    if (!module) return false;
    file = module->path;
    if (is_below(file, interpreter->standard_library)) return true;
  }
  const auto holds = [&](const std::string& directory) { return is_below(file, directory); };
  return is_below(file, interpreter->prefix + "/bin") ||
         std::any_of(interpreter->site_directories.begin(), interpreter->site_directories.end(),
                     holds);
}

std::vector<python::PlanRequest> programs_named_in(const std::vector<std::string>& arguments) {
  constexpr size_t kMost = 3;
  std::vector<python::PlanRequest> programs;
  for (const std::string& word : arguments) {
    if (programs.size() == kMost) break;
    const size_t colon = word.find(':');
    if (word.ends_with(".py")) {
      if (auto program = file_program(word, false)) programs.push_back(std::move(*program));
    } else if (colon != word.npos && read_module_list(word.substr(0, colon)) &&
               read_module_list(word.substr(colon + 1))) {
      python::PlanRequest program;
      program.code = "import " + word.substr(0, colon);
      program.directory = current_directory();
      programs.push_back(std::move(program));
    }
  }
  return programs;
}

}  // namespace cohabit
