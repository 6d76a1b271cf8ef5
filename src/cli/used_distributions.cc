#include "cli/used_distributions.h"

#include <unordered_map>
#include <vector>

#include "cli/arguments.h"
#include "facts/python/installed_files.h"
#include "facts/python/requirement.h"

namespace cohabit {
namespace {

using Names = std::set<std::string>;

// A native file is reached through what requires its distribution, if not as a module itself.
std::unordered_map<std::string, std::vector<std::string>> modules_loaded(
    World& world, const std::vector<std::string>& frameworks) {
  std::unordered_map<std::string, std::vector<std::string>> loaded;  // frameworks, by path
  const auto variables = own_variables("");
  for (const std::string& framework : frameworks) {
    const Sequence sequence = plan_sequence(world, {framework}, variables);
    for (const python::PlannedModule& module : sequence.plan->modules)
      loaded[module.path].push_back(framework);
  }
  return loaded;
}

// Normal names. `in_extras`: those too that an extra asks for.
std::vector<std::string> required_by(const Distribution& one, const MarkerEnvironment& environment,
                                     bool in_extras) {
  const std::vector<std::string> none;
  const std::vector<std::string>& extras = in_extras ? one.provides_extra : none;
  std::vector<std::string> names;
  for (const std::string& text : one.requires_dist)
    if (const auto requirement = PackageRequirement::parse(text);
        requirement && requirement->may_apply(environment, extras))
      names.push_back(normal_name(requirement->name));
  return names;
}

}  // namespace

void add_required(const World& world, Names& names, bool in_extras) {
  const MarkerEnvironment environment = MarkerEnvironment::of(*world.python);
  std::vector<std::string> waiting(names.begin(), names.end());
  while (!waiting.empty()) {
    const Distribution* distribution = world.distributions.find(waiting.back());
    waiting.pop_back();
    if (!distribution) continue;
    for (std::string& name : required_by(*distribution, environment, in_extras))
      if (names.insert(name).second) waiting.push_back(std::move(name));
  }
}

std::vector<uint32_t> users_of(const World& world, const Names& names) {
  const MarkerEnvironment environment = MarkerEnvironment::of(*world.python);
  const std::vector<Distribution>& all = world.distributions.all();
  std::unordered_map<std::string, std::vector<uint32_t>> requirers;
  std::vector<uint32_t> users;
  std::vector<bool> known(all.size());
  const auto add = [&](uint32_t one) {
    if (!known[one]) users.push_back(one);
    known[one] = true;
  };
  for (uint32_t i = 0; i < all.size(); i++) {
    if (names.contains(normal_name(all[i].name))) add(i);
    for (std::string& name : required_by(all[i], environment, true))
      requirers[std::move(name)].push_back(i);
  }
  for (size_t at = 0; at < users.size(); at++)
    for (const uint32_t one : requirers[normal_name(all[users[at]].name)]) add(one);
  return users;
}

std::map<std::string, Names> used_distributions(World& world) {
  const auto frameworks = find_frameworks(world);
  const auto loaded = modules_loaded(world, frameworks);
  const InstalledFiles files = InstalledFiles::read(world.tree, world.distributions);
  std::map<std::string, Names> used;
  for (const std::string& framework : frameworks) used[framework];
  for (const InstalledFiles::Row& row : files.rows())
    if (const auto found = loaded.find(files.path_of(row)); found != loaded.end())
      for (const std::string& framework : found->second)
        used[framework].insert(normal_name(world.distributions.all()[row.distribution].name));
  for (auto& [framework, names] : used) add_required(world, names, false);
  return used;
}

}  // namespace cohabit
