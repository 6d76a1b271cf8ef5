#include "cli/installer_environment.h"

#include <algorithm>
#include <cstdlib>

#include "actions/ask.h"
#include "actions/check/command.h"
#include "base/paths.h"
#include "base/tree.h"
#include "cli/python_command.h"
#include "facts/python/interpreter.h"

namespace cohabit {
namespace {

constexpr int kPatience = 60'000;  // milliseconds

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// The value of an option: "--python X", "--python=X", "-p X", "-pX"; empty: not given.
std::string value_of(const std::vector<std::string>& command,
                     const std::vector<std::string>& names) {
  for (size_t i = 1; i < command.size(); i++)
    for (const std::string& name : names) {
      if (command[i] == name && i + 1 < command.size()) return command[i + 1];
      if (command[i].starts_with(name + "=")) return command[i].substr(name.size() + 1);
      if (name.size() == 2 && command[i].starts_with(name)) return command[i].substr(2);
    }
  return "";
}

bool has(const std::vector<std::string>& command, const std::string& word) {
  return std::find(command.begin(), command.end(), word) != command.end();
}

bool is_yes(const std::string& value) {
  return value == "1" || value == "true" || value == "yes" || value == "on";
}

// `uv pip` takes the environment that is active; its commands about projects (add, sync) take the
// project's.
std::string ask_uv(const std::string& path, const std::vector<std::string>& command) {
  std::vector<std::string> question;
  if (!has(command, "pip")) {
    // It may be another one than the .venv that `uv python find` would name.
    if (!variable("UV_PROJECT_ENVIRONMENT").empty() || !value_of(command, {"--project"}).empty())
      return "";
    if (!has(command, "--active")) question = {"env", "-u", "VIRTUAL_ENV"};
  }
  question.push_back(path);
  for (const char* place : {"--directory", "--project"})
    if (const std::string value = value_of(command, {place}); !value.empty())
      question.insert(question.end(), {place, value});
  question.insert(question.end(), {"python", "find"});
  if (has(command, "--system") || is_yes(variable("UV_SYSTEM_PYTHON")))
    question.emplace_back("--system");
  std::string request = value_of(command, {"--python", "-p"});
  if (request.empty()) request = variable("UV_PYTHON");
  if (!request.empty()) question.push_back(std::move(request));
  std::string answer = ask_program(question, kPatience);
  answer.erase(answer.find_last_not_of("\r\n") + 1);
  return answer.starts_with('/') ? answer : "";
}

bool is_pip(const std::vector<std::string>& command) {
  const auto module = std::find_if(command.begin() + 1, command.end(), check::is_module_option);
  return check::is_pip(last_part(command[0])) ||
         (module != command.end() && module + 1 != command.end() && *(module + 1) == "pip");
}

}  // namespace

bool is_uv(const std::vector<std::string>& command) {
  return last_part(command[0]) == "uv";
}

InstallerEnvironment environment_of_installer(const std::string& path,
                                              const std::vector<std::string>& command) {
  if (is_uv(command)) {
    std::string answer = ask_uv(path, command);
    const bool is_sure = !answer.empty();
    // `uv pip` says itself that there is none.
    const bool must_be_named = !is_sure && !has(command, "pip");
    return {std::move(answer), is_sure, must_be_named};
  }
  if (!is_pip(command)) return {find_started_python(path, command).interpreter, false, false};
  std::string named = value_of(command, {"--python"});
  if (named.empty()) named = variable("PIP_PYTHON");
  const auto python = find_interpreter(Tree(""), named.empty() ? path : named);
  if (python) return {python->executable, true, false};
  return {find_started_python(path, command).interpreter, false, false};
}

}  // namespace cohabit
