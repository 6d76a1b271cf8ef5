#include "cli/asked_modules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <unordered_set>

#include "base/addresses.h"
#include "base/rows.h"
#include "facts/elf/object.h"
#include "facts/python/entry_points.h"
#include "facts/python/listed_modules.h"
#include "facts/python/requirement.h"
#include "findings/environment.h"
#include "imports/finder.h"
#include "imports/imported_names.h"
#include "imports/native_symbols.h"

namespace cohabit {
namespace {

// Orders of pairs are simulated: 30 of them take as long as the plans of the modules, and there are
// 90 of so many.
constexpr size_t kMostPaired = 10;

// Whether it comes with `owner`, which requires it: always, or in an extra, if it carries the
// owner's name (psycopg-binary, jax-cuda12-plugin). Extras name what has a life of its own, too:
// scikit-learn's matplotlib.
bool comes_with(const PackageRequirement& wanted, const std::string& name, const std::string& owner,
                const MarkerEnvironment& environment) {
  return name != owner && (wanted.applies(environment, "") || name.starts_with(owner + "-"));
}

// Indices of the distributions that were asked for, but for those that come with another.
std::vector<uint32_t> asked_distributions(const Distributions& distributions,
                                          const Interpreter& python) {
  const std::vector<Distribution>& all = distributions.all();
  const MarkerEnvironment environment = MarkerEnvironment::of(python);
  std::unordered_set<std::string> along;
  for (const Distribution& one : all) {
    if (!one.is_requested) continue;
    const std::string owner = normal_name(one.name);
    for (const std::string& text : one.requires_dist) {
      const auto wanted = PackageRequirement::parse(text);
      if (!wanted) continue;
      std::string name = normal_name(wanted->name);
      if (comes_with(*wanted, name, owner, environment)) along.insert(std::move(name));
    }
  }
  std::vector<uint32_t> asked;
  for (uint32_t i = 0; i < all.size(); i++)
    if (all[i].is_requested && !along.contains(normal_name(all[i].name))) asked.push_back(i);
  return asked;
}

// A distribution may have many in a namespace, or behind entry points: what breaks breaks most.
constexpr size_t kMostInNamespaces = 4;
constexpr size_t kMostOfEntryPoints = 3;

bool is_module(std::string_view dotted, char between) {
  const std::vector<std::string_view> parts = split(dotted, between);
  return std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
    const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '_' || c >= 0x80; };
    return !part.empty() && !std::isdigit(static_cast<unsigned char>(part[0])) &&
           std::all_of(part.begin(), part.end(), fits);
  });
}

constexpr std::string_view kInit = "/__init__.py";

// The full name of the module that a path of a RECORD is: "a.b" of "a/b/__init__.py", "a/b.py" and
// "a/b.abi3.so"; empty: none that is imported by its name.
std::string module_name(std::string_view path) {
  if (path.ends_with(kInit)) {
    path.remove_suffix(kInit.size());
  } else if (path.ends_with(".py") || path.ends_with(".so")) {
    path = path.substr(0, path.find('.', path.rfind('/') + 1));  // npos + 1: there is no slash
  } else {
    return "";
  }
  if (!is_module(path, '/') || path[0] == '_' || path.find("/_") != path.npos) return "";
  std::string name(path);
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

// What of the distribution is imported by a name of one part, as its files come.
std::vector<std::string_view> top_modules(const InstalledFiles& files, uint32_t distribution) {
  std::vector<std::string_view> modules;
  const auto [begin, end] = files.rows_of(distribution);
  for (size_t i = begin; i < end; i++)
    if (const auto module = import_name(files.rows()[i].record.path);
        !module.empty() && !is_by_the_way(module))
      modules.push_back(module);
  return modules;
}

// Directories above a file, the nearest first: "a/b", "a" of "a/b/c.py".
std::vector<std::string_view> parents_of(std::string_view path) {
  std::vector<std::string_view> parents;
  for (size_t slash; (slash = path.rfind('/')) != path.npos;)
    parents.push_back(path = path.substr(0, slash));
  return parents;
}

// Modules of the distribution that lie in no package of its own, and are not at the top.
std::vector<std::string> modules_in_namespaces(const InstalledFiles& files, uint32_t distribution) {
  const auto [begin, end] = files.rows_of(distribution);
  std::unordered_set<std::string_view> packages;
  for (size_t i = begin; i < end; i++) {
    const std::string_view path = files.rows()[i].record.path;
    if (path.ends_with(kInit)) packages.insert(path.substr(0, path.size() - kInit.size()));
  }
  std::set<std::pair<size_t, std::string>> found;  // by depth
  for (size_t i = begin; i < end; i++) {
    const RecordRow& row = files.rows()[i].record;
    std::string name = module_name(row.path);
    const bool is_package = row.path.ends_with(kInit);
    if (name.find('.') == name.npos || is_by_the_way(name) || (is_package && row.size == 0))
      continue;
    std::vector<std::string_view> parents = parents_of(row.path);
    if (is_package) parents.erase(parents.begin());
    if (std::none_of(parents.begin(), parents.end(),
                     [&](std::string_view parent) { return packages.contains(parent); }))
      found.emplace(parents.size(), std::move(name));
  }
  std::vector<std::string> modules;
  for (const auto& [depth, name] : found)
    if (modules.size() < kMostInNamespaces) modules.push_back(name);
  return modules;
}

// The one that most of the distribution's files belong to, of several.
std::string main_module(const InstalledFiles& files, uint32_t distribution,
                        const std::vector<std::string>& modules) {
  std::map<std::string, size_t> counts;
  const auto [begin, end] = files.rows_of(distribution);
  for (const std::string& module : modules) {
    std::string path = module;
    std::replace(path.begin(), path.end(), '.', '/');
    counts[module] = static_cast<size_t>(std::count_if(
        files.rows().begin() + begin, files.rows().begin() + end, [&](const auto& row) {
          const std::string_view file = row.record.path;
          return file.starts_with(path) && file.substr(path.size()).find_first_of("/.") == 0;
        }));
  }
  return *std::max_element(modules.begin(), modules.end(),
                           [&](const auto& a, const auto& b) { return counts[a] < counts[b]; });
}

constexpr uint64_t kLargestText = uint64_t{1} << 20;

std::vector<EntryPoint> entry_points_of(const World& world, const Distribution& distribution) {
  return parse_entry_points(
      world.tree.read_text(distribution.metadata + "/entry_points.txt", kLargestText).value_or(""));
}

// A compiled module does not show what it imports; what its distribution requires does.
bool requires_options_library(const Distribution& distribution) {
  return std::any_of(distribution.requires_dist.begin(), distribution.requires_dist.end(),
                     [](const std::string& text) {
                       const auto requirement = PackageRequirement::parse(text);
                       const std::string name =
                           requirement ? normal_name(requirement->name) : std::string();
                       return name == "click" || name == "typer" || name == "docopt";
                     });
}

bool reads_options(const std::string& text) {
  for (const char* library : {"argparse", "click", "typer", "optparse", "docopt"})
    for (const char* statement : {"import ", "from "})
      if (text.find(std::string(statement) + library) != text.npos) return true;
  return false;
}

// Which modules read the options of a command line, themselves or by a part of their own package
// (pip's in pip._internal.cli.cmdoptions, two imports away).
class OptionReaders {
 public:
  OptionReaders(const Tree& tree, python::Finder& finder) : tree_(tree), finder_(finder) {}

  bool contain(const std::string& module, int depth = 2) {
    const auto spec = finder_.find_dotted(module);
    if (!spec || spec->kind != python::ModuleKind::kSource || !seen_.emplace(module, depth).second)
      return false;
    auto text = tree_.read_text(spec->path, kLargestText);
    if (!text) return false;
    if (reads_options(*text)) return true;
    if (depth == 0) return false;
    const std::string top = module.substr(0, module.find('.')) + ".";
    for (const python::ImportedName& one :
         python::imported_names(python::Syntax(std::move(*text)), spec->package()).names) {
      if (!(one.module + ".").starts_with(top)) continue;
      if (contain(one.module, depth - 1)) return true;
      for (const std::string& member : one.members)
        if (contain(one.module + "." + member, depth - 1)) return true;
    }
    return false;
  }

 private:
  const Tree& tree_;
  python::Finder& finder_;
  std::set<std::pair<std::string, int>> seen_;
};

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

std::string ExaminedModules::unpaired() const {
  if (left_alone.empty()) return "";
  return fmt::format(
      "{} {} looked at alone, not with others: there are too many for every pair (--imports a,b "
      "looks at one)",
      fmt::join(left_alone, ", "), left_alone.size() == 1 ? "was" : "were");
}

std::vector<std::string> own_modules(const InstalledFiles& files, uint32_t distribution,
                                     const std::string& name) {
  std::set<std::string> modules;
  for (const std::string_view module : top_modules(files, distribution)) {
    if (normal_name(std::string(module)) == normal_name(name)) return {std::string(module)};
    if (module[0] != '_') modules.emplace(module);
  }
  if (modules.empty()) return modules_in_namespaces(files, distribution);
  return {modules.begin(), modules.end()};
}

std::vector<std::string> all_modules(const InstalledFiles& files, uint32_t distribution,
                                     const std::string& name) {
  constexpr size_t kMost = 8;
  std::vector<std::string> modules = own_modules(files, distribution, name);
  for (const std::string_view module : top_modules(files, distribution))
    if (modules.size() < kMost && module[0] != '_' &&
        std::find(modules.begin(), modules.end(), module) == modules.end())
      modules.emplace_back(module);
  return modules;
}

std::vector<std::string> modules_of_entry_points(const World& world,
                                                 const Distribution& distribution) {
  std::vector<std::string> modules;
  for (const EntryPoint& entry : entry_points_of(world, distribution)) {
    std::string module = entry.call.substr(0, entry.call.find(':'));
    if (modules.size() < kMostOfEntryPoints && is_module(module, '.') &&
        std::find(modules.begin(), modules.end(), module) == modules.end())
      modules.push_back(std::move(module));
  }
  return modules;
}

std::vector<std::string> scripts_with_help(World& world, const Distribution& distribution) {
  constexpr size_t kMost = 3;
  std::vector<std::string> scripts;
  python::Finder& finder = finder_of(world);
  OptionReaders readers(world.tree, finder);
  for (const EntryPoint& entry : entry_points_of(world, distribution)) {
    if (scripts.size() == kMost || entry.group != "console_scripts") break;
    const std::string module = entry.call.substr(0, entry.call.find(':'));
    if (!is_module(module, '.') || entry.name.find_first_of("/ ") != std::string::npos) continue;
    const auto spec = finder.find_dotted(module);
    if (!spec) continue;
    if (spec->kind == python::ModuleKind::kSource ? readers.contain(module)
                                                  : requires_options_library(distribution))
      scripts.push_back(entry.name);
  }
  return scripts;
}

namespace {

// Whether it has nothing that an import would run: libraries for others, below packages that are
// empty files (nvidia-cublas).
bool is_only_libraries(const InstalledFiles& files, uint32_t distribution) {
  const auto [begin, end] = files.rows_of(distribution);
  return std::none_of(
      files.rows().begin() + begin, files.rows().begin() + end,
      [](const auto& row) { return row.record.path.ends_with(".py") && row.record.size != 0; });
}

// Of a project that is installed in place: its RECORD lists a .pth file or a finder. setuptools
// tells its modules; else what is named as the distribution in the project's usual places. Of a
// project that is gone the name is all that is left.
std::vector<std::string> editable_modules(const World& world, const Distribution& one) {
  std::vector<std::string> modules;
  for (std::string& name : listed_modules(world.tree, one))
    if (is_module(name, '.') && name[0] != '_' && modules.size() < kMostInNamespaces)
      modules.push_back(std::move(name));
  const auto project = path_of_address(one.editable);
  if (!modules.empty() || !project) return modules;
  if (!world.tree.stat(*project)) return {module_named_as(one)};
  for (const char* below : {"", "/src", "/python", "/lib"})
    for (const std::string& name : world.tree.list(*project + below)) {
      const std::string path = fmt::format("{}{}/{}", *project, below, name);
      const std::string_view module = std::string_view(name).substr(0, name.find('.'));
      if (is_module(module, '.') && normal_name(std::string(module)) == normal_name(one.name) &&
          (name.ends_with(".py") || world.tree.stat(path + "/__init__.py")))
        return {std::string(module)};
    }
  return {};
}

// A library that lies among a distribution's files is none (nvidia.cu13.lib.libcheckpoint).
bool is_module_file(const World& world, const python::ModuleSpec& spec) {
  if (spec.kind != python::ModuleKind::kNative) return spec.kind != python::ModuleKind::kNamespace;
  const auto file = world.tree.map(spec.path);
  if (!file) return false;
  const elf::Object object = elf::parse(file->bytes());
  const std::string wanted = "PyInit_" + spec.name.substr(spec.name.rfind('.') + 1);
  return python::defines(object, [&](std::string_view name) { return name == wanted; });
}

// Whether the file that the distribution lists for this module is gone: its import fails.
bool is_lost(const World& world, const InstalledFiles& files, uint32_t distribution,
             std::string_view module) {
  bool is_listed = false;
  const auto [begin, end] = files.rows_of(distribution);
  for (size_t i = begin; i < end; i++) {
    const InstalledFiles::Row& row = files.rows()[i];
    if (import_name(row.record.path) != module) continue;
    if (world.tree.stat(files.path_of(row))) return false;
    is_listed = true;
  }
  return is_listed;
}

}  // namespace

ExaminedModules find_examined_modules(const World& world) {
  ExaminedModules found{find_frameworks(world), {}, {}};
  const std::vector<Distribution>& all = world.distributions.all();
  std::vector<uint32_t> asked = asked_distributions(world.distributions, *world.python);
  // A framework's own distribution: its RECORD is long, and tells nothing new.
  std::erase_if(asked, [&](uint32_t one) {
    return std::count(found.paired.begin(), found.paired.end(), normal_name(all[one].name)) > 0;
  });
  if (asked.empty()) return found;
  const InstalledFiles files = InstalledFiles::read_some(world.tree, world.distributions, asked);
  python::Finder finder(world.tree, *world.python);
  std::vector<std::pair<size_t, std::string>> native;  // with how many files of that kind
  std::set<std::string> taken;  // two distributions may bring one: opencv-python and -headless
  for (const uint32_t one : asked) {
    auto modules = own_modules(files, one, all[one].name);
    const bool in_place = modules.empty() && !all[one].editable.empty();
    if (in_place) modules = editable_modules(world, all[one]);
    if (modules.empty()) continue;
    // A distribution that brings a framework is looked at as that.
    if (std::any_of(modules.begin(), modules.end(), [&](const std::string& module) {
          return std::count(found.paired.begin(), found.paired.end(), module) > 0;
        }))
      continue;
    if (in_place) {  // its module may be found by a finder of its own
      for (const std::string& module : modules)
        if (taken.insert(module).second) found.alone.push_back(module);
      continue;
    }
    const std::string module = main_module(files, one, modules);
    const bool is_native = !all[one].native_files.empty();
    const auto spec = finder.find_dotted(module);
    // A directory may stay behind, with what was compiled in it.
    const bool is_there = spec && spec->kind != python::ModuleKind::kNamespace;
    if (!is_there && is_lost(world, files, one, module) && taken.insert(module).second)
      found.alone.push_back(module);
    if (!spec || !is_module_file(world, *spec)) continue;
    if (is_native && spec->is_package() && is_only_libraries(files, one)) continue;
    if (!taken.insert(module).second) continue;
    if (is_native)
      native.emplace_back(all[one].native_files.size(), module);
    else
      found.alone.push_back(module);
  }
  std::stable_sort(native.begin(), native.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [count, module] : native) {
    const bool has_room = found.paired.size() < kMostPaired;
    (has_room ? found.paired : found.alone).push_back(module);
    if (!has_room) found.left_alone.push_back(module);
  }
  return found;
}

}  // namespace cohabit
