#include "imports/brings.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace cohabit::python {
namespace {

// The first part of a path below the site directory, without what follows the module's name; empty
// for what lies elsewhere.
std::string_view top_level(std::string_view path, std::string_view site) {
  if (path.size() <= site.size() + 1 || !path.starts_with(site)) return "";
  path.remove_prefix(site.size() + 1);
  return path.substr(0, std::min(path.find_first_of("/."), path.size()));
}

// Debian's and conda's records of a package leave requirements out, or name them otherwise.
bool tells_requirements(const Distribution& one) {
  return one.has_metadata && !one.is_conda_package && one.metadata.ends_with(".dist-info");
}

}  // namespace

Brings::Brings(const Distributions& distributions, const cohabit::Interpreter& python)
    : distributions_(distributions), markers_(MarkerEnvironment::of(python)) {
  for (const Distribution& one : distributions.all()) {
    std::string_view last;
    for (const std::string& file : one.native_files) {
      const std::string_view module = top_level(file, one.site);
      if (module.empty() || module == last) continue;
      last = module;
      const auto [entry, is_new] = by_module_.try_emplace(std::string(module), &one);
      if (!is_new && entry->second != &one) entry->second = nullptr;
    }
  }
}

const Distribution* Brings::provider(std::string_view module) const {
  const std::string top(module.substr(0, module.find('.')));
  const auto known = by_module_.find(top);
  return known != by_module_.end() ? known->second : distributions_.find(top);
}

const Brings::Names& Brings::brought_by(const Distribution& one) {
  if (const auto known = brought_.find(&one); known != brought_.end()) return known->second;
  Names names{normal_name(one.name)};
  std::vector<std::pair<const Distribution*, std::string>> waiting{{&one, ""}};
  std::unordered_set<std::string> seen;  // "name[extra]"
  while (!waiting.empty()) {
    const auto [from, extra] = std::move(waiting.back());
    waiting.pop_back();
    for (const std::string& text : from->requires_dist) {
      const auto wanted = PackageRequirement::parse(text);
      if (!wanted || !wanted->applies(markers_, extra)) continue;
      const std::string name = normal_name(wanted->name);
      names.insert(name);
      const Distribution* next = distributions_.find(name);
      if (!next) continue;
      if (seen.insert(name).second) waiting.emplace_back(next, "");
      for (const std::string& also : wanted->extras)
        if (seen.insert(fmt::format("{}[{}", name, also)).second) waiting.emplace_back(next, also);
    }
  }
  return brought_.emplace(&one, std::move(names)).first->second;
}

bool Brings::may_need(const std::string& file, std::string_view module) {
  const Distribution* wanted = provider(module);
  if (!wanted) return true;
  const auto owners = distributions_.owners(file);
  if (owners.empty()) return true;
  return std::any_of(owners.begin(), owners.end(), [&](const Distribution* one) {
    return !tells_requirements(*one) || brought_by(*one).contains(normal_name(wanted->name));
  });
}

bool Brings::lacks_required(const std::string& file, std::string_view module) const {
  if (distributions_.find(module)) return false;
  const auto is_it = [&](const std::string& text) {
    const auto wanted = PackageRequirement::parse(text);
    return wanted && wanted->applies(markers_, "") &&
           normal_name(wanted->name) == normal_name(module);
  };
  const auto owners = distributions_.owners(file);
  return std::any_of(owners.begin(), owners.end(), [&](const Distribution* one) {
    return tells_requirements(*one) &&
           std::any_of(one->requires_dist.begin(), one->requires_dist.end(), is_it);
  });
}

}  // namespace cohabit::python
