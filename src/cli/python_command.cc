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
#include "cli/shell_text.h"
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

std::string current_directory() {
  std::error_code error;
  return fs::current_path(error).string();
}

// These choose the environment themselves: a bare "python" behind them is not that of PATH.
bool starts_in_its_environment(std::string_view name) {
  static constexpr std::string_view kNames[] = {"uv",    "uvx",    "poetry", "pipenv", "pdm",
                                                "hatch", "rye",    "conda",  "mamba",  "micromamba",
                                                "pixi",  "docker", "podman", "ssh",    "srun"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// The makefile that make reads: -f FILE, or one of three names; -C DIRECTORY comes before.
std::optional<std::string> makefile_of(const Tree& tree, const std::vector<std::string>& command,
                                       std::string* directory) {
  const auto value_of = [&](std::string_view option) -> std::string {
    for (size_t at = 1; at < command.size(); at++)
      if (command[at].starts_with(option))
        return command[at].size() > option.size() ? command[at].substr(option.size())
               : at + 1 < command.size()          ? command[at + 1]
                                                  : "";
    return "";
  };
  *directory = (fs::path(current_directory()) / value_of("-C")).lexically_normal().string();
  std::vector<std::string> names = {"GNUmakefile", "makefile", "Makefile"};
  if (const std::string file = value_of("-f"); !file.empty()) names = {file};
  for (const std::string& name : names)
    if (auto text = text_of_script(tree, (fs::path(*directory) / name).string())) return text;
  return std::nullopt;
}

// `conda run -n NAME python app.py`
std::optional<StartedPython> started_by_conda(const Tree& tree,
                                              const std::vector<std::string>& command) {
  for (size_t at = 1; at + 1 < command.size(); at++) {
    const std::string& word = command[at];
    if (!chooses_conda_environment(word)) continue;
    const auto prefix = conda_environment(tree, command[at + 1]);
    if (!prefix) return std::nullopt;
    const auto python = interpreter_of_word(tree, *prefix + "/bin/python");
    StartedPython started{python->interpreter, "", {}, last_part(command[0])};
    for (size_t rest = at + 2; rest < command.size(); rest++)
      if (command[rest].find('/') == std::string::npos)
        if (auto found = interpreter_of_word(tree, *prefix + "/bin/" + command[rest])) {
          started.path = found->file;
          started.command.assign(command.begin() + static_cast<ptrdiff_t>(rest), command.end());
          break;
        }
    return started;
  }
  return std::nullopt;
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
  const std::string name(last_part(path));
  if (auto python = find_interpreter(tree, path)) return {python->executable, path, command, ""};
  if (is_conda(name))
    if (auto started = started_by_conda(tree, command)) return *started;
  const bool brings_environment = starts_in_its_environment(name);
  for (size_t at = 1; at < command.size(); at++) {
    if (brings_environment && command[at].find('/') == std::string::npos) continue;
    if (auto found = interpreter_of_word(tree, command[at]))
      return {found->interpreter,
              found->file,
              {command.begin() + static_cast<ptrdiff_t>(at), command.end()},
              name};
  }
  if (!brings_environment) {
    for (size_t at = 1; at < command.size(); at++)
      if (auto python = python_in_shell_text(tree, command[at], "")) return {*python, "", {}, name};
    for (const std::string& word : command) {
      const std::string& file = word == command[0] ? path : word;
      if (const auto text = text_of_script(tree, file))
        if (auto python = python_in_shell_text(tree, *text, directory_of(file)))
          return {*python, "", {}, last_part(file)};
    }
    std::string directory;
    if (name == "make" || name == "gmake")
      if (const auto text = makefile_of(tree, command, &directory))
        if (auto python = python_in_shell_text(tree, *text, directory))
          return {*python, "", {}, "the makefile"};
  }
  if (auto python = find_interpreter(tree, "")) return {python->executable, "", {}, ""};
  return {};
}

std::string environment_is_dropped_by(const std::vector<std::string>& command) {
  static constexpr std::string_view kOthers[] = {"sudo", "doas", "su", "runuser", "pkexec"};
  for (size_t at = 0; at < command.size(); at++) {
    const std::string name = last_part(command[at]);
    if (std::find(std::begin(kOthers), std::end(kOthers), name) != std::end(kOthers))
      return std::string(name);
    if (name != "env") continue;
    for (size_t next = at + 1; next < command.size(); next++) {
      const std::string& word = command[next];
      if (word == "-" || word == "--ignore-environment") return "env -i";
      if (!word.starts_with('-')) break;
      if (word == "-u" || word == "-C" || word == "--unset" || word == "--chdir") next++;
      const size_t value = word.find_first_of("uCS");  // these take the rest of the word
      if (!word.starts_with("--") && word.substr(0, value).find('i') != word.npos) return "env -i";
    }
  }
  return "";
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

std::vector<python::PlanRequest> programs_named_in(const StartedPython& started,
                                                   const std::vector<std::string>& arguments) {
  constexpr size_t kMost = 3;
  std::vector<python::PlanRequest> programs;
  const Tree tree("");
  const auto interpreter = find_interpreter(tree, started.interpreter);
  if (!interpreter) return programs;
  python::Finder finder(tree, *interpreter, current_directory());
  for (const std::string& word : arguments) {
    if (programs.size() == kMost) break;
    const size_t colon = word.find(':');
    if (word.ends_with(".py")) {
      if (auto program = file_program(word, false)) programs.push_back(std::move(*program));
    } else if (colon != word.npos && read_module_list(word.substr(0, colon)) &&
               read_module_list(word.substr(colon + 1)) &&
               finder.find_top_level(word.substr(0, std::min(colon, word.find('.'))))) {
      python::PlanRequest program;
      program.code = "import " + word.substr(0, colon);
      program.directory = current_directory();
      programs.push_back(std::move(program));
    }
  }
  return programs;
}

}  // namespace cohabit
