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

void add_required(const World& world, const MarkerEnvironment& environment, Names& names) {
  std::vector<std::string> waiting(names.begin(), names.end());
  while (!waiting.empty()) {
    const Distribution* distribution = world.distributions.find(waiting.back());
    waiting.pop_back();
    if (!distribution) continue;
    for (const std::string& text : distribution->requires_dist) {
      const auto requirement = PackageRequirement::parse(text);
      if (!requirement || !requirement->applies(environment, "")) continue;
      if (std::string name = normal_name(requirement->name); names.insert(name).second)
        waiting.push_back(std::move(name));
    }
  }
}

}  // namespace

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
  const MarkerEnvironment environment = MarkerEnvironment::of(*world.python);
  for (auto& [framework, names] : used) add_required(world, environment, names);
  return used;
}

}  // namespace cohabit
