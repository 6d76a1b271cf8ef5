#include "actions/launch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "actions/ask.h"
#include "actions/runtime_library.h"
#include "base/paths.h"
#include "base/rows.h"

namespace cohabit {
namespace {

constexpr const char* kRulesVariable = "COHABIT_PRELOAD_RULES";
constexpr const char* kHookVariable = "COHABIT_START_HOOK";

// For sh: nothing in single quotes has a meaning.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'')
      result += "'\\''";
    else
      result += c;
  }
  result += '\'';
  return result;
}

// One line of a comment: what stands in it may be the name of a file, with any bytes.
std::string comment(const std::string& text) {
  std::string line = "# " + text + "\n";
  for (size_t at = 0; at + 1 < line.size(); at++)
    if (static_cast<unsigned char>(line[at]) < ' ') line[at] = '?';
  return line;
}

std::string reason_of(const Repair& repair, const std::string& name) {
  if (name == kRulesVariable) return "the dlopen calls whose flags libcohabit_preload.so changes";
  if (name != "LD_PRELOAD") return "part of the repair";
  std::vector<std::string> parts;
  if (!repair.flags.empty()) parts.emplace_back("changes flags of dlopen calls");
  for (const std::string& library : repair.preloads)
    parts.push_back(fmt::format("maps {} before everything else", last_part(library)));
  return fmt::format("{}", fmt::join(parts, "; "));
}

// What is set when the script runs is kept, as it is here.
std::string shell_line_of_preloads(const Repair& repair, const std::string& interposer) {
  Variables own;
  apply_variables(repair, interposer, own);
  const auto set = std::find_if(own.begin(), own.end(),
                                [](const auto& entry) { return entry.first == "LD_PRELOAD"; });
  return set == own.end() ? ""
                          : fmt::format("export LD_PRELOAD={}\"${{LD_PRELOAD:+:$LD_PRELOAD}}\"",
                                        quoted(set->second));
}

void change(const VariableChange& variable) {
  if (variable.value)
    ::setenv(variable.name.c_str(), variable.value->c_str(), 1);
  else
    ::unsetenv(variable.name.c_str());
}

}  // namespace

Result<std::vector<VariableChange>> launch_variables(const Repair& repair,
                                                     const Variables& environment) {
  std::string interposer;
  Variables after = environment;
  if (!repair.flags.empty()) {
    auto found = find_runtime_library("libcohabit_preload.so", "COHABIT_PRELOAD_LIBRARY");
    if (!found) return tl::unexpected<Error>(found.error());
    auto path = preloadable_path(*found);
    if (!path) return tl::unexpected<Error>(path.error());
    interposer = *path;
    std::erase_if(after, [](const auto& entry) { return entry.first == kRulesVariable; });
    Repair flags;
    flags.flags = repair.flags;
    after.emplace_back(kRulesVariable, format_rules(flags, ';'));
  }
  apply_variables(repair, interposer, after);
  const bool has_preloads =
      std::any_of(environment.begin(), environment.end(),
                  [](const auto& entry) { return entry.first == "LD_PRELOAD"; });
  std::vector<VariableChange> changes;
  for (const auto& entry : after) {
    if (std::find(environment.begin(), environment.end(), entry) != environment.end()) continue;
    const bool preloads = entry.first == "LD_PRELOAD";
    changes.push_back({entry.first, entry.second, reason_of(repair, entry.first),
                       preloads ? shell_line_of_preloads(repair, interposer) : "",
                       preloads && has_preloads});
  }
  for (const auto& [name, value] : environment)
    if (std::none_of(after.begin(), after.end(),
                     [&](const auto& entry) { return entry.first == name; }))
      changes.push_back({name, std::nullopt, reason_of(repair, name)});
  return changes;
}

VariableChange change_of(const NeededVariable& needed, const VariableMap& environment) {
  const bool adds = needed.setting == Setting::kAppend || needed.setting == Setting::kPrepend;
  return {
      needed.name, value_of(needed, environment), needed.reason, shell_line(needed, true),
      needed.setting == Setting::kCopy || (adds && !variable_of(environment, needed.name).empty())};
}

Result<std::vector<VariableChange>> hook_variables(const Variables& settings,
                                                   const VariableMap& environment) {
  auto file = find_runtime_library("start/sitecustomize.py", kHookVariable);
  if (!file) return tl::unexpected<Error>(file.error());
  auto directory = preloadable_path(directory_of(*file));  // PYTHONPATH holds no colons either
  if (!directory) return tl::unexpected<Error>(directory.error());
  std::vector<VariableChange> changes;
  const auto add = [&](const std::string& name, const std::string& part, Setting setting,
                       std::string reason) {
    NeededVariable variable;
    variable.name = name;
    variable.part = part;
    variable.setting = setting;
    variable.separator = ":";
    variable.reason = std::move(reason);
    changes.push_back(change_of(variable, environment));
  };
  for (const auto& [name, value] : settings)
    add(name, value, Setting::kSet, "what the start-up hook of Cohabit does");
  add("PYTHONPATH", *directory, Setting::kPrepend,
      "the start-up hook of Cohabit, which must stay in that directory: without it nothing is "
      "deferred, and a share that only a call tells is not told; the user's own sitecustomize runs "
      "after it");
  return changes;
}

Result<std::vector<std::string>> needed_at_import(const std::string& python,
                                                  const std::vector<std::string>& modules,
                                                  const std::vector<std::string>& files) {
  constexpr int kPatience = 60000;
  if (files.empty()) return std::vector<std::string>();
  auto checker = find_runtime_library("start/cohabit_defer.py", kHookVariable);
  if (!checker) return tl::unexpected<Error>(checker.error());
  std::vector<std::string> command = {
      python, "-I", "-S", *checker, "--check", fmt::format("{}", fmt::join(modules, ","))};
  command.insert(command.end(), files.begin(), files.end());
  std::vector<std::string> lines;
  const std::string answer = ask_program(command, kPatience);
  for (const std::string_view line : split(answer, '\n'))
    if (!line.empty()) lines.emplace_back(line);
  return lines;
}

std::string launch_script(const Repair& repair, const std::vector<VariableChange>& changes,
                          const std::vector<std::string>& command) {
  // A directive in front of the first command is about the whole file.
  const bool looks_expanded = std::any_of(
      command.begin(), command.end(),
      [](const std::string& word) { return word.find_first_of("$`") != std::string::npos; });
  std::string text =
      "#!/bin/sh\n" + std::string(looks_expanded ? "# shellcheck disable=SC2016\n" : "") +
      comment("Written by `cohabit run --write`: " +
              (repair.empty() ? std::string("nothing is to be repaired") : describe(repair)) + ".");
  if (!repair.flags.empty())
    text +=
        "# The flags of dlopen calls are changed by libcohabit_preload.so, which must stay where\n"
        "# LD_PRELOAD names it; without it ld.so says so and the program starts without the "
        "change.\n";
  for (const VariableChange& variable : changes) {
    text += comment(variable.reason);
    if (!variable.shell.empty()) {
      text += variable.shell + "\n";
      continue;
    }
    text += variable.value ? fmt::format("export {}={}\n", variable.name, quoted(*variable.value))
                           : fmt::format("unset {}\n", variable.name);
  }
  text += "exec";
  for (const std::string& word : command) text.append(" ").append(quoted(word));
  return text + " \"$@\"\n";
}

Result<std::string> find_command(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (::access(name.c_str(), F_OK) == 0 || errno != ENOENT) return name;
    return fail(fmt::format("there is no command {}", name));
  }
  const char* set = std::getenv("PATH");
  const std::string path = set ? set : "/usr/bin:/bin";
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const std::string directory = end > begin ? path.substr(begin, end - begin) : ".";
    std::string place = fmt::format("{}/{}", directory, name);
    if (::access(place.c_str(), X_OK) == 0) return place;
    begin = end + 1;
  }
  return fail(fmt::format("there is no command {} in PATH ({})", name, path));
}

Error execute(const std::string& path, const std::vector<std::string>& command,
              const std::vector<VariableChange>& changes) {
  for (const VariableChange& variable : changes) change(variable);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execvp(path.c_str(), arguments.data());  // runs a text without #! by the shell, as a shell does
  return {fmt::format("cannot start {}: {}", path, std::strerror(errno))};
}

}  // namespace cohabit
