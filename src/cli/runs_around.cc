#include "cli/runs_around.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/asked_modules.h"
#include "cli/used_distributions.h"
#include "cli/verify_runs.h"
#include "facts/python/requirement.h"
#include "findings/environment.h"

namespace cohabit {
namespace {

using Names = std::set<std::string>;
using Imports = std::vector<std::string>;

std::string text_of(const Imports& imports) {
  return fmt::format("{}", fmt::join(imports, ", "));
}

Result<void> read_world(World& world, const std::string& python) {
  if (auto found = find_environment(world, python); !found) return found;
  world.machine =
      read_machine(world.tree, world.python->elf_machine, "", world.python->elf_interpreter);
  return {};
}

// As many at a time as the machine has room for; what an earlier guard has run is known.
Result<std::vector<VerifiedRow>> run(const World& world, const std::vector<Imports>& orders,
                                     const std::map<std::string, std::string>& verdicts,
                                     RunsAround::Known known) {
  if (orders.empty()) return std::vector<VerifiedRow>();
  VerifyRequest request;
  request.jobs = 0;
  request.cached = known == RunsAround::Known::kMayBe;
  request.leaves_bytecode = false;
  return verify_orders(world, Repair{}, orders, request, [&](VerifiedRow& row) {
    if (const auto verdict = verdicts.find(text_of(row.imports)); verdict != verdicts.end())
      row.predicted = verdict->second;
  });
}

bool has_failed(const VerifiedRow& row) {
  return row.run.outcome != Outcome::kOk;
}

}  // namespace

// Many packages require a few: what is nearest to a change is what it breaks.
std::vector<Imports> RunsAround::add_own(const World& world, const Names& expected) {
  constexpr size_t kMostPackages = 24;
  const InstalledFiles files = InstalledFiles::read(world.tree, world.distributions);
  std::vector<Imports> added;
  std::vector<uint32_t> users = users_of(world, expected);
  if (users.size() > kMostPackages) users.resize(kMostPackages);
  for (const uint32_t one : users) {
    const std::string& name = world.distributions.all()[one].name;
    Names names = {normal_name(name)};
    add_required(world, names, true);
    for (std::string& module : own_modules(files, one, name)) {
      if (!uses_.try_emplace(module, names).second) continue;  // a framework
      own_.insert(module);
      added.push_back({std::move(module)});
    }
  }
  return added;
}

// Its package is gone, or has no such module any more: that is what was installed, and who needs
// the module is run too.
bool RunsAround::has_left(const std::string& module, World& world) const {
  return own_.contains(module) && !finder_of(world).find_top_level(module);
}

Result<void> RunsAround::run_before(const std::string& python,
                                    const std::map<std::string, std::string>& verdicts,
                                    const std::optional<Names>& expected) {
  const Tree tree("");
  World world(tree);
  if (auto read = read_world(world, python); !read) return read;
  uses_ = used_distributions(world);
  verdicts_ = verdicts;
  const auto may_change = [&](const std::string& framework) {
    const Names& used = uses_[framework];
    return !expected || std::any_of(expected->begin(), expected->end(),
                                    [&](const std::string& name) { return used.contains(name); });
  };
  std::vector<Imports> orders = orders_of(find_frameworks(world));
  std::erase_if(orders, [&](const Imports& imports) {
    const auto verdict = verdicts.find(text_of(imports));
    return verdict == verdicts.end() || verdict->second != "sound" ||
           std::none_of(imports.begin(), imports.end(), may_change);
  });
  if (expected)
    for (Imports& imports : add_own(world, *expected)) orders.push_back(std::move(imports));
  const auto rows = run(world, orders, verdicts, Known::kMayBe);
  if (!rows) return tl::unexpected<Error>(rows.error());
  for (const VerifiedRow& row : *rows)
    if (row.run.outcome == Outcome::kOk) worked_.push_back(row.imports);
  return {};
}

Result<std::vector<RunsAround::Broken>> RunsAround::run_after(
    const std::string& python, const std::vector<PackageChange>& changes, Known known) {
  const Tree tree("");
  World world(tree);
  if (auto read = read_world(world, python); !read) return tl::unexpected<Error>(read.error());
  for (const auto& [framework, names] : used_distributions(world))
    uses_[framework].insert(names.begin(), names.end());
  for (const std::string& module : own_) add_required(world, uses_[module], true);
  const auto used_by = [&](const Imports& imports) {
    std::vector<PackageChange> used;
    for (const PackageChange& change : changes)
      if (std::any_of(imports.begin(), imports.end(), [&](const std::string& framework) {
            return uses_[framework].contains(normal_name(change.name));
          }))
        used.push_back(change);
    return used;
  };
  std::vector<Imports> orders = worked_;
  std::erase_if(orders, [&](const Imports& imports) {
    return used_by(imports).empty() || has_left(imports[0], world);
  });
  const auto rows = run(world, orders, verdicts_, known);
  if (!rows) return tl::unexpected<Error>(rows.error());
  std::vector<Broken> broken;
  for (const VerifiedRow& row : *rows)
    if (has_failed(row))
      broken.push_back({text_of(row.imports), row.run.detail, used_by(row.imports)});
  return broken;
}

Result<std::vector<RunsAround::Broken>> RunsAround::run_own(
    const std::string& python, const std::vector<PackageChange>& packages, Known known) {
  const Tree tree("");
  World world(tree);
  if (auto read = read_world(world, python); !read) return tl::unexpected<Error>(read.error());
  const InstalledFiles files = InstalledFiles::read(world.tree, world.distributions);
  const std::vector<Distribution>& all = world.distributions.all();
  std::vector<Broken> broken;
  for (const PackageChange& change : packages)
    for (uint32_t i = 0; i < all.size(); i++) {
      if (normal_name(all[i].name) != normal_name(change.name)) continue;
      std::vector<Imports> imports;
      for (std::string& module : own_modules(files, i, change.name))
        imports.push_back({std::move(module)});
      const auto rows = run(world, imports, {}, known);
      if (!rows) return tl::unexpected<Error>(rows.error());
      // Of several modules some are for other platforms, or for what is not installed.
      if (rows->empty() || !std::all_of(rows->begin(), rows->end(), has_failed)) continue;
      broken.push_back({text_of((*rows)[0].imports), (*rows)[0].run.detail, {change}});
    }
  return broken;
}

}  // namespace cohabit
