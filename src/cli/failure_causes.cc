#include "cli/failure_causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/paths.h"
#include "findings/environment.h"
#include "findings/words.h"
#include "imports/builtins.h"

namespace cohabit {
namespace {

// What stands between two texts; empty: one of them does not.
std::string between(std::string_view text, std::string_view begin, std::string_view end) {
  const size_t first = text.find(begin);
  if (first == text.npos) return "";
  text = text.substr(first + begin.size());
  const size_t last = text.find(end);
  return last == text.npos ? "" : std::string(text.substr(0, last));
}

// What an error is about.
struct About {
  std::set<std::string> files;    // it was raised in, or that it names
  std::set<std::string> modules;  // that it names, and the one that is missing
  std::string missing;            // "nx._x"; empty: another failure
};

void add_words(const std::string& failure, About& about) {
  // "cannot import name 'x' from 'pkg' (/lib/pkg/__init__.py)"
  if (const std::string path = between(failure, " (/", ")"); !path.empty())
    about.files.insert("/" + path);
  std::string missing = missing_module(failure);
  std::string module = between(failure, " from '", "'");
  if (module.empty()) module = between(failure, "module '", "'");
  const std::string name = between(failure, "cannot import name '", "'");
  if (missing.empty() && !module.empty() && !name.empty())
    missing = fmt::format("{}.{}", module, name);
  for (const std::string& one : {missing, module})
    if (!one.empty()) about.modules.insert(one);
  if (about.missing.empty()) about.missing = missing;
}

About read_failure(const python::Plan& plan) {
  About about;
  if (plan.failure_file.starts_with('/')) about.files.insert(plan.failure_file);
  add_words(plan.failure, about);
  add_words(plan.failure_cause, about);
  return about;
}

std::string slashed(std::string module) {
  std::replace(module.begin(), module.end(), '.', '/');
  return module;
}

bool claims_one_of(const Tree& tree, const Distribution& distribution, const About& about) {
  std::string record("\n");
  record.append(tree.read_text(distribution.metadata + "/RECORD").value_or(""));
  const auto lists = [&](const std::string& path) {
    return record.find(fmt::format("\n{},", path)) != record.npos;
  };
  for (const std::string& file : about.files)
    if (is_below(file, distribution.site) && lists(file.substr(distribution.site.size() + 1)))
      return true;
  return std::any_of(about.modules.begin(), about.modules.end(), [&](const std::string& module) {
    const std::string path = slashed(module);
    return lists(path + ".py") || lists(path + "/__init__.py");
  });
}

bool names(std::string_view headline, std::string_view name) {
  for (size_t at = headline.find(name); at != headline.npos; at = headline.find(name, at + 1)) {
    const size_t end = at + name.size();
    const bool begins = at == 0 || headline[at - 1] == ' ';
    if (begins && (end == headline.size() || headline[end] == ' ' || headline[end] == ':'))
      return true;
  }
  return false;
}

// PY007: what was imported is the file in front.
bool is_shadow_of(const Finding& shadow, const About& about) {
  if (shadow.code != "PY007" || shadow.libraries.empty()) return false;
  const std::string& front = shadow.libraries.front().path;
  const std::string module = between(shadow.headline, "`import ", "`");
  return about.files.contains(front) ||
         std::any_of(about.modules.begin(), about.modules.end(), [&](const std::string& one) {
           return one == module || one.starts_with(module + ".");
         });
}

bool is_about_files(const Finding& finding) {
  return finding.severity > Severity::kNote &&
         (finding.code == "FI001" || finding.code == "FI002" || finding.code == "FI003");
}

std::vector<const Distribution*> owners_of(const World& world, const About& about) {
  std::vector<const Distribution*> owners;
  for (const Distribution& one : world.distributions.all())
    if (claims_one_of(world.tree, one, about)) owners.push_back(&one);
  return owners;
}

// An extension module that this Python does not look for: "_x.cpython-310-x86_64-linux-gnu.so".
// Nothing: there is none, or one that it takes too.
std::optional<std::string> build_for_another(const World& world, const About& about) {
  const size_t dot = about.missing.rfind('.');
  if (dot == about.missing.npos) return std::nullopt;
  const std::string stem = about.missing.substr(dot + 1);
  const auto suffixes = python::extension_suffixes(world.tree, *world.python);
  for (const std::string& site : world.python->module_path) {
    const std::string package = site + "/" + slashed(about.missing.substr(0, dot));
    std::optional<std::string> other;
    for (const std::string& file : world.tree.list(package)) {
      if (!file.starts_with(stem + ".") || !file.ends_with(".so")) continue;
      const bool is_ours =
          std::any_of(suffixes.begin(), suffixes.end(),
                      [&](const std::string& suffix) { return file == stem + suffix; });
      if (is_ours) return std::nullopt;
      other = fmt::format("{}/{}", package, file);
    }
    if (other) return other;
  }
  return std::nullopt;
}

// No other finding told more than where the line is.
bool is_of_no_use(const Help& help) {
  return help.command.empty() &&
         (help.text.starts_with("see ") || help.text.find("has no such module") != help.text.npos);
}

void put_first(Help help, Finding& failure) {
  std::erase_if(failure.help, is_of_no_use);
  failure.help.insert(failure.help.begin(), std::move(help));
}

}  // namespace

void explain_failure(const World& world, const python::Plan& plan,
                     const std::vector<Finding>& known, Finding& failure) {
  if (failure.code != "PY302" || !world.python || plan.failure_is_exit) return;
  const About about = read_failure(plan);
  for (const Finding& one : known)
    if (is_shadow_of(one, about))
      return put_first({fmt::format("see PY007: {}", one.headline), "", Safety::kManual}, failure);
  if (failure.help.empty() || !is_of_no_use(failure.help.front())) return;
  const std::vector<const Distribution*> owners = owners_of(world, about);
  if (const auto other = build_for_another(world, about)) {
    Help help{
        fmt::format("{} is there, and {} {}.{} does not look for it: it is built for another "
                    "Python, C library or processor; install a build for this one",
                    *other, world.python->implementation, world.python->major, world.python->minor),
        "", Safety::kManual};
    if (!owners.empty()) {
      help.command = installer_command(world.python->executable, world.distributions, "install",
                                       again(owners.front()->name, owners.front()->version));
      help.safety = Safety::kUnsafe;
    }
    return put_first(std::move(help), failure);
  }
  for (const Finding& one : known) {
    if (!is_about_files(one)) continue;
    const bool is_theirs =
        std::any_of(owners.begin(), owners.end(),
                    [&](const Distribution* owner) { return names(one.headline, label(*owner)); });
    if (!is_theirs) continue;
    if (one.help.empty()) continue;
    Help help = one.help.front();
    help.text = fmt::format("see {}: {}; {}", one.code, one.headline, help.text);
    return put_first(std::move(help), failure);
  }
}

}  // namespace cohabit
