#include "cli/asked_modules.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "facts/python/requirement.h"
#include "findings/environment.h"
#include "imports/finder.h"

namespace cohabit {
namespace {

// Orders of pairs are simulated: 30 of them take as long as the plans of the modules.
constexpr size_t kMostPaired = 6;

// Indices of the distributions that were asked for.
std::vector<uint32_t> asked_distributions(const Distributions& distributions) {
  const std::vector<Distribution>& all = distributions.all();
  std::unordered_set<std::string> named;
  for (const Distribution& one : all) {
    if (!one.is_requested) continue;
    const std::string own = normal_name(one.name);
    for (const std::string& text : one.requires_dist)
      if (const auto wanted = PackageRequirement::parse(text); wanted)
        if (std::string name = normal_name(wanted->name); name != own)
          named.insert(std::move(name));
  }
  std::vector<uint32_t> asked;
  for (uint32_t i = 0; i < all.size(); i++)
    if (all[i].is_requested && !named.contains(normal_name(all[i].name))) asked.push_back(i);
  return asked;
}

// The one that most of the distribution's files belong to, of several.
std::string main_module(const InstalledFiles& files, uint32_t distribution,
                        const std::vector<std::string>& modules) {
  std::map<std::string_view, size_t> counts;
  const auto [begin, end] = files.rows_of(distribution);
  for (size_t i = begin; i < end; i++) {
    const std::string_view path = files.rows()[i].record.path;
    counts[path.substr(0, path.find_first_of("/."))]++;
  }
  return *std::max_element(modules.begin(), modules.end(),
                           [&](const auto& a, const auto& b) { return counts[a] < counts[b]; });
}

}  // namespace

std::vector<std::string> ExaminedModules::all() const {
  std::vector<std::string> modules = paired;
  modules.insert(modules.end(), alone.begin(), alone.end());
  return modules;
}

std::vector<std::vector<std::string>> ExaminedModules::orders() const {
  std::vector<std::vector<std::string>> orders = orders_of(paired);
  for (const std::string& module : alone) orders.push_back({module});
  return orders;
}

std::vector<std::string> own_modules(const InstalledFiles& files, uint32_t distribution,
                                     const std::string& name) {
  const auto [begin, end] = files.rows_of(distribution);
  std::set<std::string> modules;
  for (size_t i = begin; i < end; i++) {
    const std::string_view module = import_name(files.rows()[i].record.path);
    if (module.empty() || is_by_the_way(module)) continue;
    if (normal_name(std::string(module)) == normal_name(name)) return {std::string(module)};
    if (module[0] != '_') modules.emplace(module);
  }
  return {modules.begin(), modules.end()};
}

ExaminedModules find_examined_modules(const World& world) {
  ExaminedModules found{find_frameworks(world), {}};
  const std::vector<Distribution>& all = world.distributions.all();
  std::vector<uint32_t> asked = asked_distributions(world.distributions);
  if (asked.empty()) return found;
  const InstalledFiles files = InstalledFiles::read(world.tree, world.distributions);
  python::Finder finder(world.tree, *world.python);
  std::vector<std::string> native;
  for (const uint32_t one : asked) {
    const auto modules = own_modules(files, one, all[one].name);
    if (modules.empty()) continue;
    // A distribution that brings a framework is looked at as that.
    if (std::any_of(modules.begin(), modules.end(), [&](const std::string& module) {
          return std::count(found.paired.begin(), found.paired.end(), module) > 0;
        }))
      continue;
    const std::string module = main_module(files, one, modules);
    const auto spec = finder.find_top_level(module);
    if (!spec || spec->kind == python::ModuleKind::kNamespace) continue;
    (all[one].native_files.empty() ? found.alone : native).push_back(module);
  }
  const bool few = found.paired.size() + native.size() <= kMostPaired;
  std::vector<std::string>& place = few ? found.paired : found.alone;
  place.insert(place.end(), native.begin(), native.end());
  return found;
}

}  // namespace cohabit
