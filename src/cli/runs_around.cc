#include "cli/runs_around.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "base/rows.h"
#include "cli/asked_modules.h"
#include "cli/guarded_install.h"
#include "cli/used_distributions.h"
#include "cli/verify_runs.h"
#include "facts/python/requirement.h"
#include "findings/environment.h"
#include "findings/importers.h"
#include "report/printable.h"

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

// After the install. An exception may be of the moment (a server that does not answer, a file that
// another process holds); a crash or a wrong value once is once too often.
Result<std::vector<VerifiedRow>> run_after_install(
    const World& world, const std::vector<Imports>& orders,
    const std::map<std::string, std::string>& verdicts, RunsAround::Known known) {
  auto rows = run(world, orders, verdicts, known);
  if (!rows) return rows;
  std::vector<Imports> again;
  for (const VerifiedRow& row : *rows)
    if (row.run.outcome == Outcome::kException) again.push_back(row.imports);
  auto second = run(world, again, verdicts, RunsAround::Known::kNothing);
  if (!second) return second;
  auto repeated = second->begin();
  for (VerifiedRow& row : *rows) {
    if (row.run.outcome != Outcome::kException) continue;
    if (!has_failed(*repeated))
      say_guarding("`{}` failed once, and works when it is run again: {}",
                   statement_of(row.imports), report::printable(row.run.detail));
    row = std::move(*repeated++);
  }
  return rows;
}

// "numpy.core" of "No module named 'numpy.core'": what Python puts into quotes.
std::vector<std::string> quoted_names(const std::string& text) {
  std::vector<std::string> names;
  const std::vector<std::string_view> parts = split(text, '\'');
  for (size_t i = 1; i + 1 < parts.size(); i += 2) names.emplace_back(parts[i]);
  return names;
}

}  // namespace

void RunsAround::add_brought(const World& world, const InstalledFiles& files) {
  const std::vector<Distribution>& all = world.distributions.all();
  for (const InstalledFiles::Row& row : files.rows())
    if (const std::string_view module = import_name(row.record.path); !module.empty())
      brought_[normal_name(all[row.distribution].name)].emplace(module);
  for (uint32_t i = 0; i < all.size(); i++)
    if (Names& modules = brought_[normal_name(all[i].name)]; modules.empty())
      for (std::string& module : own_modules(files, i, all[i].name))
        modules.insert(std::move(module));
}

// Many packages require a few: what is nearest to a change is what it breaks.
std::vector<Imports> RunsAround::add_own(World& world, const InstalledFiles& files,
                                         const Names& expected) {
  constexpr size_t kMostPackages = 24;
  std::vector<Imports> added;
  std::vector<uint32_t> users = users_of(world, expected);
  if (users.size() > kMostPackages) users.resize(kMostPackages);
  for (const uint32_t one : users) {
    const Distribution& distribution = world.distributions.all()[one];
    Names names = {normal_name(distribution.name)};
    add_required(world, names, true);
    // A new version may have less than the old one: of what changes all is looked at.
    std::vector<std::string> modules = expected.contains(normal_name(distribution.name))
                                           ? all_modules(files, one, distribution.name)
                                           : own_modules(files, one, distribution.name);
    for (std::string& module : modules_of_entry_points(world, distribution))
      modules.push_back(std::move(module));
    for (const std::string& script : scripts_with_help(world, distribution))
      modules.push_back(script + std::string(kHelp));
    for (std::string& module : modules) {
      const bool is_new = uses_.try_emplace(module, names).second;
      if (!is_new && !own_.contains(module)) continue;  // a framework
      own_[module].insert(normal_name(distribution.name));
      if (!is_new) continue;
      added.push_back({std::move(module)});
    }
  }
  return added;
}

bool RunsAround::is_gone(const std::string& module, World& world) const {
  if (is_script(module))
    return !world.tree.stat(fmt::format("{}/bin/{}", world.python->prefix,
                                        module.substr(0, module.size() - kHelp.size())));
  return own_.contains(module) && !finder_of(world).find_dotted(module);
}

// With its package: that is what was installed, and who needs the module is run too.
bool RunsAround::has_left(const std::string& module, World& world) const {
  const auto owners = own_.find(module);
  return owners != own_.end() && is_gone(module, world) &&
         std::none_of(owners->second.begin(), owners->second.end(), [&](const std::string& owner) {
           return world.distributions.find(owner) != nullptr;
         });
}

// Its package is there and has it no more.
void RunsAround::judge_gone(const std::string& module, const World& world,
                            const InstalledFiles& files, const Names& asked, Broken& broken) const {
  const Names& owners = own_.at(module);
  broken.blamed.clear();
  for (const PackageChange& change : broken.used)
    if (owners.contains(normal_name(change.name)) && change.before != change.after)
      broken.blamed.push_back(change);
  const auto was_asked_for = [&](const std::string& owner) {
    return asked.contains(owner) && std::any_of(broken.blamed.begin(), broken.blamed.end(),
                                                [&](const PackageChange& change) {
                                                  return normal_name(change.name) == owner;
                                                });
  };
  broken.is_dropped = !broken.blamed.empty();
  for (const std::string& owner : owners)
    if (world.distributions.find(owner) && !was_asked_for(owner)) broken.is_dropped = false;
  const auto is_others = [&](uint32_t distribution) {
    return !owners.contains(normal_name(world.distributions.all()[distribution].name));
  };
  const std::string importer =
      is_script(module) ? "" : importer_of(world.tree, files, module, is_others);
  if (importer.empty()) return;
  broken.is_dropped = false;
  broken.how += fmt::format("; {} imports it", importer);
}

std::vector<PackageChange> RunsAround::blamed_by(const VerifiedRun& run,
                                                 const std::vector<PackageChange>& used,
                                                 const World& world,
                                                 const InstalledFiles& files) const {
  std::vector<PackageChange> blamed;
  const auto blame_if = [&](auto is_meant) {
    if (blamed.empty())
      std::copy_if(used.begin(), used.end(), std::back_inserter(blamed), is_meant);
  };
  const std::vector<std::string> names = quoted_names(run.exception);
  const auto is_named = [&](const std::string& module) {
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return name.starts_with(module) &&
             (name.size() == module.size() || name[module.size()] == '.');
    });
  };
  blame_if([&](const PackageChange& change) {
    const auto modules = brought_.find(normal_name(change.name));
    return modules != brought_.end() &&
           std::any_of(modules->second.begin(), modules->second.end(), is_named);
  });
  const std::vector<Distribution>& all = world.distributions.all();
  std::map<std::string, Names> owners;  // by file
  for (const std::string& file : run.raised_in) owners[file];
  for (const InstalledFiles::Row& row : files.rows())
    if (const auto owned = owners.find(files.path_of(row)); owned != owners.end())
      owned->second.insert(normal_name(all[row.distribution].name));
  for (const std::string& file : run.raised_in)
    blame_if([&](const PackageChange& change) {
      return owners[file].contains(normal_name(change.name));
    });
  return blamed;
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
  const InstalledFiles files = InstalledFiles::read(world.tree, world.distributions);
  add_brought(world, files);
  if (expected)
    for (Imports& imports : add_own(world, files, *expected)) orders.push_back(std::move(imports));
  const auto rows = run(world, orders, verdicts, Known::kMayBe);
  if (!rows) return tl::unexpected<Error>(rows.error());
  for (const VerifiedRow& row : *rows)
    if (row.run.outcome == Outcome::kOk) worked_.push_back(row.imports);
  return {};
}

Result<std::vector<RunsAround::Broken>> RunsAround::run_after(
    const std::string& python, const std::vector<PackageChange>& changes, Known known,
    const Names& asked) {
  const Tree tree("");
  World world(tree);
  if (auto read = read_world(world, python); !read) return tl::unexpected<Error>(read.error());
  for (const auto& [framework, names] : used_distributions(world))
    uses_[framework].insert(names.begin(), names.end());
  for (const auto& [module, owners] : own_) add_required(world, uses_[module], true);
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
  const auto rows = run_after_install(world, orders, verdicts_, known);
  if (!rows) return tl::unexpected<Error>(rows.error());
  std::vector<Broken> broken;
  if (std::none_of(rows->begin(), rows->end(), has_failed)) return broken;
  const InstalledFiles files = InstalledFiles::read(world.tree, world.distributions);
  add_brought(world, files);
  for (const VerifiedRow& row : *rows) {
    if (!has_failed(row)) continue;
    std::vector<PackageChange> used = used_by(row.imports);
    std::vector<PackageChange> blamed = blamed_by(row.run, used, world, files);
    broken.push_back(
        {statement_of(row.imports), row.run.detail, std::move(used), std::move(blamed)});
    if (const std::string& module = row.imports[0]; own_.contains(module) && is_gone(module, world))
      judge_gone(module, world, files, asked, broken.back());
  }
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
      const auto rows = run_after_install(world, imports, {}, known);
      if (!rows) return tl::unexpected<Error>(rows.error());
      // Of several modules some are for other platforms, or for what is not installed.
      if (rows->empty() || !std::all_of(rows->begin(), rows->end(), has_failed)) continue;
      broken.push_back({statement_of((*rows)[0].imports), (*rows)[0].run.detail, {change}, {}});
    }
  return broken;
}

}  // namespace cohabit
