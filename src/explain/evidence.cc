// A mechanism names what to look at (its [[checks]]); here is what looking means. Where doctor has
// a rule for the same thing, the rule is asked: one code, one text. Not finding is a contradiction
// only where it would have to be there.
#include "explain/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "base/paths.h"
#include "explain/definitions.h"
#include "explain/inventory.h"
#include "explain/looks.h"
#include "facts/cuda/builds.h"
#include "facts/python/version.h"
#include "findings/rule.h"

namespace cohabit::explain {
namespace {

constexpr size_t kShown = 3;

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::string describe(const Copy& copy) {
  return copy.owner.empty() ? copy.path : fmt::format("{} ({})", copy.path, copy.owner);
}

void list(Seen& seen, const std::vector<Copy>& copies) {
  for (size_t i = 0; i < std::min(copies.size(), kShown); i++)
    seen.facts.push_back("there is " + describe(copies[i]));
  if (copies.size() > kShown)
    seen.facts.push_back(fmt::format("and {} more files", copies.size() - kShown));
}

// ---- one function for each kind of check

Seen ask_rule(const Look& look) {
  Seen seen;
  const Rule* rule = find_rule_by_code(look.argument);
  if (!rule || !rule->check_environment) return seen;
  const std::vector<Finding> findings = rule->check_environment(look.examined);
  for (size_t i = 0; i < std::min(findings.size(), kShown); i++)
    seen.facts.push_back(fmt::format("{}: {}", rule->code, findings[i].headline));
  if (!findings.empty()) {
    seen.status = Status::kConfirmed;
  } else if (look.answer.mechanism->code == rule->code) {
    seen.status = Status::kContradicted;
    seen.facts.push_back(fmt::format("{} finds nothing in this environment", rule->code));
  }
  return seen;
}

// A file of the environment is not found by its name where nobody's path leads to it: that is no
// contradiction to "not found", but one to "not there" (`absent`).
Seen is_library_missing(const Look& look, bool absent) {
  Seen seen;
  if (has_hole(look.argument)) return seen;
  const auto same = copies_of(look.argument, look.examined, look.machine);
  if (!same.empty()) {
    const bool found =
        std::any_of(same.begin(), same.end(), [](const Copy& copy) { return copy.owner.empty(); });
    seen.status = absent || found ? Status::kContradicted : Status::kConfirmed;
    list(seen, same);
    return seen;
  }
  seen.status = Status::kConfirmed;
  seen.facts.push_back(
      fmt::format("no file {} in this environment, in LD_LIBRARY_PATH or in the "
                  "loader's cache",
                  look.argument));
  list(seen, copies_of(std::string(stem_of(look.argument)) + ".so", look.examined, look.machine));
  return seen;
}

Seen is_library_elsewhere(const Look& look) {
  Seen seen;
  if (has_hole(look.argument)) return seen;
  const auto copies = copies_of(look.argument, look.examined, look.machine);
  seen.status = copies.empty() ? Status::kContradicted : Status::kConfirmed;
  list(seen, copies);
  if (copies.empty())
    seen.facts.push_back(fmt::format("no file {} in this environment", look.argument));
  return seen;
}

std::string captured(const Answer& answer, std::string_view name) {
  for (const Capture& capture : answer.captures)
    if (capture.name == name) return capture.value;
  return "";
}

// Whether the library has what the text says it lacks. The file that the text names decides. Where
// it names none, one copy without it is enough: that one was found first. Where it names one that
// is not here, copies of both kinds settle nothing.
Seen is_definition_missing(const Look& look) {
  Seen seen;
  if (has_hole(look.argument)) return seen;
  const std::string symbol = captured(look.answer, "symbol");
  const std::string version = captured(look.answer, "version");
  const std::string& what = symbol.empty() ? version : symbol;
  if (what.empty()) return seen;
  std::vector<Copy> copies = copies_of(last_part(look.argument), look.examined, look.machine);
  const std::string named = captured(look.answer, "library");
  const auto exact = std::find_if(copies.begin(), copies.end(),
                                  [&](const Copy& copy) { return copy.path == named; });
  const bool is_here = exact != copies.end();
  if (is_here) copies = {Copy(*exact)};
  const Definers found = find_definers(copies, symbol, version, look.examined.tree);
  const auto tell = [&](const std::vector<Copy>& some, const char* verb) {
    for (size_t i = 0; i < std::min(some.size(), kShown); i++)
      seen.facts.push_back(fmt::format("{} {} {}", describe(some[i]), verb, what));
  };
  tell(found.without, "does not define");
  tell(found.with, "defines");
  const bool is_elsewhere = !is_here && named.find('/') != named.npos;
  if (!found.without.empty() && !found.with.empty() && is_elsewhere) return seen;
  if (!found.without.empty())
    seen.status = Status::kConfirmed;
  else if (!found.with.empty())
    seen.status = Status::kContradicted;
  return seen;
}

// Two files of one library that are not the same: by its name up to ".so".
bool do_differ(const std::vector<Copy>& copies, const Tree& tree) {
  std::map<std::string, std::set<std::pair<std::string, uint64_t>>> files;
  for (const Copy& copy : copies) {
    const std::string name(last_part(copy.path));
    const auto status = tree.stat(copy.path);
    files[std::string(stem_of(name))].emplace(name, status ? status->size : 0);
  }
  return std::any_of(files.begin(), files.end(),
                     [](const auto& library) { return library.second.size() > 1; });
}

Seen has_several_copies(const Look& look) {
  Seen seen;
  std::vector<Copy> copies = copies_of(look.argument, look.examined, look.machine);
  std::map<std::string, Copy> by_directory;
  for (const Copy& copy : copies) by_directory.emplace(directory_of(copy.path), copy);
  if (by_directory.empty()) return seen;
  const bool differ = do_differ(copies, look.examined.tree);
  copies.clear();
  for (const auto& [directory, copy] : by_directory) copies.push_back(copy);
  if (copies.size() == 1)
    seen.status = Status::kContradicted;
  else if (differ)
    seen.status = Status::kConfirmed;
  list(seen, copies);
  if (copies.size() == 1)
    seen.facts.push_back(fmt::format("that is the only directory with {}", look.argument));
  return seen;
}

// Where a mixture is one reason of many.
Seen list_copies(const Look& look) {
  Seen seen = has_several_copies(look);
  seen.status = Status::kNotCheckable;
  return seen;
}

// That they are together is no proof that they met.
Seen are_installed(const Look& look) {
  Seen seen;
  const std::vector<std::string> names = words_of(look.argument);
  for (const std::string& name : names) {
    const Distribution* distribution = look.examined.distributions.find(name);
    if (distribution) seen.facts.push_back(label(*distribution) + " is installed");
  }
  return seen;
}

Seen is_cpu_build(const Look& look) {
  Seen seen;
  const auto builds =
      cuda::read_builds(look.examined.tree, look.examined.interpreter, look.examined.distributions);
  for (const std::string& name : words_of(look.argument)) {
    const Distribution* distribution = look.examined.distributions.find(name);
    if (!distribution) continue;
    seen.facts.push_back(label(*distribution) + " is installed");
    const bool has_cuda_name = distribution->version.find("+cu") != distribution->version.npos;
    bool says_cpu = false, says_cuda = false;
    for (const cuda::FrameworkBuild& build : builds) {
      if (name != "torch" || build.module != name || (!build.is_cpu_only && !build.cuda)) continue;
      says_cpu = build.is_cpu_only;
      says_cuda = !says_cpu;
      seen.facts.push_back("its torch/version.py says: " +
                           (says_cpu ? "no CUDA" : "CUDA " + build.cuda->text()));
    }
    const bool cpu = distribution->version.find("+cpu") != distribution->version.npos ||
                     name == "paddlepaddle" || says_cpu;
    if (cpu)
      seen.status = Status::kConfirmed;
    else if ((has_cuda_name || says_cuda) && seen.status == Status::kNotCheckable)
      seen.status = Status::kContradicted;
  }
  return seen;
}

Seen look_at_driver(const Look& look) {
  Seen seen;
  auto version = look.examined.tree.read_text("/sys/module/nvidia/version");
  const bool is_absence = look.answer.mechanism->slug == "no-driver";
  // WSL has Windows' driver, and no module of it.
  if (!version && look.examined.tree.stat("/dev/dxg")) return seen;
  if (version) {
    while (!version->empty() && version->back() == '\n') version->pop_back();
    seen.facts.push_back("the NVIDIA kernel module is of version " + *version);
    if (is_absence) seen.status = Status::kContradicted;
  } else {
    seen.facts.emplace_back("no NVIDIA kernel module is loaded on this machine");
    if (is_absence) seen.status = Status::kConfirmed;
    if (look.answer.mechanism->slug == "driver-too-old") seen.status = Status::kContradicted;
  }
  return seen;
}

// The user-space half carries its version in its file's name: libnvidia-ml.so.535.104.05.
Seen is_driver_mixed(const Look& look) {
  Seen seen = look_at_driver(look);
  const auto version = look.examined.tree.read_text("/sys/module/nvidia/version");
  const auto library = find_in_cache(look.machine, "libnvidia-ml.so.1");
  const auto real = library ? look.examined.tree.real_path(*library) : std::nullopt;
  if (!version || !real) return seen;
  const std::string module = version->substr(0, version->find('\n'));
  seen.facts.push_back("the loader's cache has " + *real);
  seen.status = real->ends_with(".so." + module) ? Status::kContradicted : Status::kConfirmed;
  return seen;
}

Seen does_file_exist(const Look& look) {
  Seen seen;
  const std::string suffix = "/" + look.argument;
  for (const InstalledFiles::Row& row : look.examined.files.rows())
    if (std::string("/").append(row.record.path).ends_with(suffix))
      seen.facts.push_back("there is " + look.examined.files.path_of(row));
  for (const char* const root : {"/usr/local/cuda", "/opt/cuda"})
    if (look.examined.tree.stat(root + suffix)) seen.facts.push_back("there is " + (root + suffix));
  if (!seen.facts.empty()) return seen;
  seen.status = Status::kConfirmed;
  seen.facts.push_back("no " + look.argument + " in this environment or in /usr/local/cuda");
  return seen;
}

Seen is_on_library_path(const Look& look) {
  Seen seen;
  const char* value = std::getenv("LD_LIBRARY_PATH");
  if (!value || !*value) {
    seen.facts.emplace_back("LD_LIBRARY_PATH is not set here");
    return seen;
  }
  seen.facts.push_back(fmt::format("LD_LIBRARY_PATH is {}", value));
  for (const std::string& name : words_of(look.argument))
    for (const Copy& copy : copies_of(name, look.examined, look.machine))
      if (copy.owner.empty() &&
          std::string_view(value).find(directory_of(copy.path)) != std::string_view::npos) {
        seen.status = Status::kConfirmed;
        seen.facts.push_back("it leads to " + copy.path);
      }
  return seen;
}

Seen is_file_damaged(const Look& look) {
  Seen seen;
  if (has_hole(look.argument)) return seen;
  for (const ChangedFile& file : look.examined.changed) {
    const InstalledFiles::Row& row = look.examined.files.rows()[file.row];
    const std::string path = look.examined.files.path_of(row);
    if (!path.ends_with("/" + look.argument)) continue;
    seen.status = Status::kConfirmed;
    seen.facts.push_back(file.missing ? path + " is gone"
                                      : fmt::format("{} has {} bytes, its RECORD says {}", path,
                                                    file.size, row.record.size));
  }
  return seen;
}

// A file of this module, or of a package of this name: "a/b" has "a/b.py" and "a/b/c.so".
bool is_of_module(std::string_view path, const std::string& module) {
  if (!path.starts_with(module)) return false;
  const std::string_view rest = path.substr(module.size());
  return rest.starts_with('/') || rest.starts_with(".py") || rest.starts_with(".cpython") ||
         rest.starts_with(".abi3") || rest == ".so";
}

Seen is_module_missing(const Look& look) {
  Seen seen;
  if (has_hole(look.argument)) return seen;
  const std::string top = look.argument.substr(0, look.argument.find('.'));
  std::string whole = look.argument;
  std::replace(whole.begin(), whole.end(), '.', '/');
  const Distribution* package = nullptr;
  for (const InstalledFiles::Row& row : look.examined.files.rows()) {
    if (!is_of_module(row.record.path, top)) continue;
    package = &look.examined.owner(row);
    if (!is_of_module(row.record.path, whole)) continue;
    seen.status = Status::kContradicted;
    seen.facts.push_back(
        fmt::format("{} has it in this environment; another Python was running", label(*package)));
    return seen;
  }
  seen.status = Status::kConfirmed;
  seen.facts.push_back(
      package ? fmt::format("{} is installed, and has no module {}", label(*package), look.argument)
              : "no distribution of this environment has the module " + top);
  return seen;
}

Seen look_at(std::string_view kind, const Look& look) {
  static const std::map<std::string_view, Seen (*)(const Look&)> kChecks = {
      {"rule", ask_rule},
      {"library-missing", [](const Look& one) { return is_library_missing(one, false); }},
      {"library-absent", [](const Look& one) { return is_library_missing(one, true); }},
      {"library-elsewhere", is_library_elsewhere},
      {"several-copies", has_several_copies},
      {"defines", is_definition_missing},
      {"copies", list_copies},
      {"distributions", are_installed},
      {"cpu-build", is_cpu_build},
      {"driver", look_at_driver},
      {"driver-mismatch", is_driver_mixed},
      {"file-exists", does_file_exist},
      {"library-path-variable", is_on_library_path},
      {"file-damaged", is_file_damaged},
      {"shm", is_shm_small},
      {"noexec", is_mounted_noexec},
      {"address-space", is_address_space_limited},
      {"memory-limit", is_memory_limited},
      {"module-missing", is_module_missing},
  };
  const auto check = kChecks.find(kind);
  return check == kChecks.end() ? Seen() : check->second(look);
}

// What a program on Windows has printed says nothing about libraries of Linux.
bool is_of_windows(const Answer& answer) {
  return std::any_of(answer.matched.begin(), answer.matched.end(), [](const MatchedLine& line) {
    return line.text.find("WinError") != line.text.npos ||
           line.text.find(".dll") != line.text.npos || line.text.find("DLL load") != line.text.npos;
  });
}

// A crash names no rule: any symbols that went to another library may be its reason.
bool explains(const Finding& finding, const Mechanism& mechanism) {
  if (finding.severity != Severity::kError || mechanism.code.empty()) return false;
  return finding.code == mechanism.code ||
         (finding.code.starts_with("CB") && mechanism.code.starts_with("CB"));
}

// The finding knows the modules' names, the mechanism does not.
void put_first(Answer& answer, const Finding& finding) {
  const Fix* general = answer.mechanism->fixes.data();
  std::vector<ReadyFix> fixes;
  for (const Help& help : finding.help)
    if (!help.command.empty())
      fixes.push_back({"", general->kind, help.text, help.command, help.safety});
  if (fixes.empty()) return;
  std::erase_if(answer.fixes, [&](const ReadyFix& fix) { return fix.text == general->text; });
  answer.fixes.insert(answer.fixes.begin(), fixes.begin(), fixes.end());
}

void put_contradicted_last(Explanation& explanation) {
  std::stable_sort(
      explanation.answers.begin(), explanation.answers.end(), [](const Answer& a, const Answer& b) {
        return (a.status == Status::kContradicted) < (b.status == Status::kContradicted);
      });
}

}  // namespace

void look_at_run(Explanation& explanation, const std::vector<Finding>& findings) {
  for (Answer& answer : explanation.answers) {
    size_t shown = 0;
    for (const Finding& finding : findings) {
      if (!explains(finding, *answer.mechanism) || shown == kShown) continue;
      if (shown++ == 0) put_first(answer, finding);
      answer.status = Status::kConfirmed;
      answer.evidence.push_back(
          fact("rule", fmt::format("this run: {}: {}", finding.code, finding.headline)));
      for (const Library& library : finding.libraries)
        answer.evidence.push_back(fact(
            "library",
            library.distribution.empty()
                ? library.path
                : fmt::format("{} ({} {})", library.path, library.distribution, library.version)));
    }
  }
  put_contradicted_last(explanation);
}

void look_at_environment(Explanation& explanation, const EnvironmentCase& examined,
                         const Machine& machine) {
  for (Answer& answer : explanation.answers) {
    if (is_of_windows(answer)) {
      answer.evidence.push_back(
          fact("system", "the text is of Windows, this environment of Linux"));
      continue;
    }
    for (const Check& check : answer.mechanism->checks) {
      const Seen seen = look_at(
          check.kind, {examined, machine, answer, fill_in(check.argument, answer.captures)});
      if (seen.status != Status::kNotCheckable) answer.status = seen.status;
      for (const std::string& text : seen.facts)
        answer.evidence.push_back(fact(std::string(check.kind), text));
    }
  }
  put_contradicted_last(explanation);
}

}  // namespace cohabit::explain
