#include <fmt/format.h>

#include "actions/check/command.h"
#include "actions/check/plan.h"
#include "actions/launch.h"
#include "base/tree.h"
#include "facts/python/interpreter.h"
#include "facts/python/version.h"

namespace cohabit::check {
namespace {

bool is_before(const Distribution* pip, const char* than) {
  const auto version = pip ? PythonVersion::parse(pip->version) : std::nullopt;
  const auto first = PythonVersion::parse(than);
  return version && first && *version < *first;
}

}  // namespace

Result<Installer> find_installer(const Interpreter& python, const Distributions& distributions) {
  if (distributions.find("pip")) return Installer{Tool::kPip, {python.executable, "-m", "pip"}};
  auto uv = find_command("uv");
  if (!uv)
    return fail(
        fmt::format("{} has no pip, and uv is not in PATH: one of them has to say what it would "
                    "install; install uv, or run `{} -m ensurepip`",
                    python.prefix, python.executable));
  return Installer{Tool::kUv, {*uv, "pip"}};
}

Result<Installer> find_answering(const Interpreter& python, const Distributions& distributions,
                                 const char* first_pip) {
  const Distribution* pip = distributions.find("pip");
  if (!is_before(pip, first_pip)) return find_installer(python, distributions);
  if (auto uv = find_command("uv")) return Installer{Tool::kUv, {*uv, "pip"}};
  // The last pip for 3.6 is 21.3.
  const bool can_upgrade = python.major > 3 || (python.major == 3 && python.minor >= 7);
  return fail(fmt::format(
      "pip {} or later is needed to be asked; {} has pip {}: {}", first_pip, python.prefix,
      pip->version,
      can_upgrade
          ? fmt::format("upgrade it (`{} -m pip install --upgrade pip`), or have uv in PATH",
                        python.executable)
          : fmt::format("there is no such pip for Python {}.{}, have uv in PATH", python.major,
                        python.minor)));
}

// Measured with an index that counts: pip 22.2 to 25.2 fetch every wheel in a dry run, also where
// the index serves metadata alone; 25.3 and later do not.
std::string cost_of_asking(const Installer& installer, const Distributions& distributions) {
  const Distribution* pip = distributions.find("pip");
  if (installer.tool == Tool::kUv)
    return is_before(pip, kFirstPip)
               ? fmt::format(
                     "pip {} cannot be asked ({} and later can): uv is, which may choose "
                     "other versions than that pip",
                     pip->version, kFirstPip)
               : "";
  if (!is_before(pip, "25.3")) return "";
  return fmt::format(
      "pip {} downloads the wheels that it would install in order to say so; 25.3 and later do not",
      pip->version);
}

std::vector<std::string> command_without_builds(const Installer& installer) {
  const std::vector<std::string>& given = installer.command;
  if (installer.tool != Tool::kPip) return given;
  std::vector<std::string> command;
  if (given.size() >= 3 && is_module_option(given[given.size() - 2]) && given.back() == "pip") {
    command.assign(given.begin(), given.end() - 2);
    if (const std::string& letters = given[given.size() - 2]; letters != "-m")
      command.push_back(letters.substr(0, letters.size() - 1));
  } else if (given.size() == 1) {
    if (const auto python = find_interpreter(Tree(""), given[0])) command = {python->executable};
  }
  if (command.empty()) return given;
  command.insert(command.end(), {"-c",
                                 "import runpy, sys; sys.executable = '/bin/false'; "
                                 "runpy.run_module('pip', run_name='__main__', alter_sys=True)"});
  return command;
}

Result<Plan> ask_installer(const Installer& installer, const Interpreter& python,
                           const Request& request) {
  return installer.tool == Tool::kPip ? ask_pip(installer, request)
                                      : ask_uv(installer, python, request);
}

}  // namespace cohabit::check
