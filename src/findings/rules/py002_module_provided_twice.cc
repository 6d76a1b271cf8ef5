// Nothing forbids two distributions to bring a module of one name. Where their files differ, FI001
// tells; this rule tells of the rest: a package here and a module there, the same in two
// directories of sys.path, or the same files in both, where removing one breaks the other.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "facts/python/requirement.h"
#include "findings/importers.h"
#include "findings/rules/rules.h"

namespace cohabit::rules {
namespace {

constexpr uint64_t kSmall = 1024;  // bytes
constexpr std::string_view kQuotes = "\"'";

struct Provider {
  uint32_t distribution;
  std::string_view path;  // of its row
};

bool is_python(std::string_view path) {
  return path.ends_with(".py") || path.ends_with(".so");
}

// How much of the smaller one's code the two claim together, and whether any of it differs.
struct Overlap {
  size_t same = 0, different = 0;
};

std::map<std::pair<uint32_t, uint32_t>, Overlap> overlaps_of(const EnvironmentCase& examined) {
  std::map<std::pair<uint32_t, uint32_t>, Overlap> overlaps;
  const std::vector<InstalledFiles::Row>& rows = examined.files.rows();
  for (const std::vector<uint32_t>& group : examined.files.claimed_twice())
    for (size_t i = 0; i < group.size(); i++)
      for (size_t j = i + 1; j < group.size(); j++) {
        const InstalledFiles::Row &first = rows[group[i]], &second = rows[group[j]];
        Overlap& overlap = overlaps[{first.distribution, second.distribution}];
        if (first.record.hash != second.record.hash)
          overlap.different++;
        else if (is_python(first.record.path))
          overlap.same++;
      }
  return overlaps;
}

size_t code_files(const EnvironmentCase& examined, uint32_t distribution) {
  const auto [begin, end] = examined.files.rows_of(distribution);
  size_t count = 0;
  for (size_t i = begin; i < end; i++)
    count += is_python(examined.files.rows()[i].record.path) ? 1 : 0;
  return count;
}

// It puts submodules of its own name into sys.modules, as a package would have them.
bool stands_in_for_package(const EnvironmentCase& examined, std::string_view name,
                           const Provider& module) {
  const auto text = examined.tree.read_text(
      examined.all()[module.distribution].site + "/" + std::string(module.path), kSmall);
  if (!text) return false;
  return std::any_of(kQuotes.begin(), kQuotes.end(), [&](char quote) {
    return text->find(fmt::format("sys.modules[{}{}.", quote, name)) != text->npos;
  });
}

// A module that stands behind another's package of its name, and steps aside for it: a small one,
// beside others of its distribution, that says so or is not imported by them (pytest's py.py, for
// who has no py).
bool steps_aside(const EnvironmentCase& examined, std::string_view name, const Provider& package,
                 const Provider& module) {
  if (!package.path.ends_with("/__init__.py") || module.path.find('/') != module.path.npos ||
      examined.all()[package.distribution].site != examined.all()[module.distribution].site)
    return false;
  const auto [begin, end] = examined.files.rows_of(module.distribution);
  bool is_small = false, has_others = false;
  for (size_t i = begin; i < end; i++) {
    const RecordRow& row = examined.files.rows()[i].record;
    if (row.path == module.path)
      is_small = row.size >= 0 && static_cast<uint64_t>(row.size) <= kSmall;
    const std::string_view other = import_name(row.path);
    has_others |= !other.empty() && other != name && other[0] != '_' && !is_by_the_way(other);
  }
  const auto is_own = [&](uint32_t one) { return one == module.distribution; };
  return is_small && has_others &&
         (stands_in_for_package(examined, name, module) ||
          importer_of(examined.tree, examined.files, std::string(name), is_own).empty());
}

// mlflow is installed with mlflow-skinny, which has a part of its files.
bool requires_other(const Distribution& one, const Distribution& other) {
  return std::any_of(one.requires_dist.begin(), one.requires_dist.end(), [&](const auto& text) {
    const auto requirement = PackageRequirement::parse(text);
    return requirement && requirement->marker.find("extra") == std::string::npos &&
           normal_name(requirement->name) == normal_name(other.name);
  });
}

Finding describe(const EnvironmentCase& examined, std::string_view name, const Provider& first,
                 const Provider& second, bool same_files) {
  const Distribution &a = examined.all()[first.distribution],
                     &b = examined.all()[second.distribution];
  Finding finding;
  const bool is_required = requires_other(a, b) || requires_other(b, a);
  const bool is_aside =
      steps_aside(examined, name, first, second) || steps_aside(examined, name, second, first);
  finding.severity = is_required || is_aside ? Severity::kNote : Severity::kWarning;
  finding.certainty = Certainty::kDeclared;
  finding.headline = fmt::format("module {} is brought by {} and by {}", name, label(a), label(b));
  for (const auto& [distribution, provider] : {std::pair{&a, &first}, std::pair{&b, &second}}) {
    const std::string path = distribution->site + "/" + std::string(provider->path);
    finding.evidence.push_back(
        fact("file", fmt::format("{} of {}", path, label(*distribution)), path));
    finding.libraries.push_back(library_of(*distribution, path));
  }
  if (same_files)
    finding.evidence.push_back(
        fact("file", "the files are the same: removing one deletes those of the other"));
  if (is_required)
    finding.evidence.push_back(fact("declared", "one of them requires the other"));
  else if (is_aside)
    finding.evidence.push_back(
        fact("file",
             "the package is imported; the module is small, and nothing of its own "
             "distribution imports it"));
  else
    finding.help.push_back({fmt::format("keep one of {} and {}", a.name, b.name),
                            installer_command(examined, "uninstall", {b.name}), Safety::kUnsafe});
  return finding;
}

std::vector<Finding> check(const EnvironmentCase& examined) {
  std::map<std::string_view, std::vector<Provider>> providers;
  for (const InstalledFiles::Row& row : examined.files.rows()) {
    const std::string_view name = import_name(row.record.path);
    if (name.empty() || is_by_the_way(name)) continue;
    std::vector<Provider>& group = providers[name];
    if (group.empty() || group.back().distribution != row.distribution)
      group.push_back({row.distribution, row.record.path});
  }
  const auto overlaps = overlaps_of(examined);
  std::set<std::pair<uint32_t, uint32_t>> told;
  std::vector<Finding> findings;
  for (const auto& [name, group] : providers)
    for (size_t i = 1; i < group.size(); i++) {
      const Provider &first = group[0], &second = group[i];
      const std::pair key{first.distribution, second.distribution};
      const Distribution &a = examined.all()[key.first], &b = examined.all()[key.second];
      if (normal_name(a.name) == normal_name(b.name) || told.contains(key)) continue;
      const auto found = overlaps.find(key);
      const Overlap overlap = found == overlaps.end() ? Overlap{} : found->second;
      const bool same_file = first.path == second.path && a.site == b.site;
      const size_t smaller =
          std::min(code_files(examined, key.first), code_files(examined, key.second));
      // A common __init__.py alone is how namespaces were made (nvidia).
      if (overlap.different > 0 || (same_file && overlap.same * 2 <= smaller)) continue;
      told.insert(key);
      findings.push_back(describe(examined, name, first, second, same_file));
    }
  return findings;
}

}  // namespace

const Rule kPy002 = {
    "PY002",
    "module-provided-twice",
    Severity::kWarning,
    "Two distributions bring a module of the same name.",
    "  Top-level modules and packages that the RECORDs of two distributions hold, at different "
    "paths "
    "or\n"
    "  with the same content. Where content differs it is FI001; namespace packages are left out.",
    "  Only one of them is imported: the first directory of sys.path, in it a package before a "
    "module. "
    "And\n"
    "  removing one distribution may delete the other's files.",
    "  tensorflow and tensorflow-cpu of the same version; `jwt` of PyJWT and of jwt.",
    "  Keep one of the two.",
    "  Distributions without RECORD are not compared. A note only: where one requires the other "
    "(its\n"
    "  files are meant to be the same), and a small module (1 KiB) beside others of its "
    "distribution,\n"
    "  behind a package, that puts modules of its own name into sys.modules or is not imported by\n"
    "  them.",
    nullptr,
    check,
};

}  // namespace cohabit::rules
