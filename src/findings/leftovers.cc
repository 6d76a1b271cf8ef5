#include "findings/leftovers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/paths.h"
#include "base/rows.h"
#include "base/variables.h"
#include "facts/elf/object.h"
#include "facts/python/requirement.h"
#include "findings/site_leftovers.h"

namespace cohabit {
namespace {

constexpr std::string_view kCacheTable =
#include "data/compile_caches.inc"
    ;

// Who is wanted: by a requirement that applies here, of somebody who is wanted; with
// `requested_count` also by name.
class WantedDistributions {
 public:
  WantedDistributions(const EnvironmentCase& examined, bool requested_count)
      : examined_(examined), environment_(MarkerEnvironment::of(examined.interpreter)) {
    for (const Distribution& distribution : examined.all())
      if (!is_removable(distribution) || (requested_count && distribution.is_requested))
        add(distribution);
  }
  bool contains(const Distribution& distribution) const { return wanted_.contains(&distribution); }

 private:
  // NVIDIA's libraries are there for others, and stay when those go.
  static bool is_removable(const Distribution& distribution) {
    return normal_name(distribution.name).starts_with("nvidia-") &&
           !distribution.is_conda_package && distribution.editable.empty();
  }
  // Extras that nobody may have asked for count too: they are not written down anywhere.
  void add(const Distribution& first) {
    std::vector<const Distribution*> waiting{&first};
    while (!waiting.empty()) {
      const Distribution& distribution = *waiting.back();
      waiting.pop_back();
      if (!wanted_.insert(&distribution).second) continue;
      for (const std::string& text : distribution.requires_dist) {
        const auto requirement = PackageRequirement::parse(text);
        if (!requirement || !requirement->may_apply(environment_, distribution.provides_extra))
          continue;
        if (const Distribution* required = examined_.distributions.find(requirement->name))
          waiting.push_back(required);
      }
    }
  }

  const EnvironmentCase& examined_;
  MarkerEnvironment environment_;
  std::set<const Distribution*> wanted_;
};

// The names of libraries that native files of these need and do not have among themselves.
std::set<std::string> needed_names(const EnvironmentCase& examined,
                                   const WantedDistributions& wanted) {
  std::set<std::string> names;
  for (const Distribution& distribution : examined.all()) {
    if (!wanted.contains(distribution)) continue;
    for (const std::string& path : distribution.native_files) {
      const auto map = examined.tree.map(path);
      if (!map) continue;
      const elf::Object object = elf::parse(map->bytes());
      for (const elf::Dependency& needed : object.dependencies) names.emplace(needed.name);
    }
  }
  for (const Distribution& distribution : examined.all())
    if (wanted.contains(distribution))
      for (const std::string& path : distribution.native_files) names.erase(last_part(path));
  return names;
}

bool is_needed(const Distribution& distribution, const std::set<std::string>& names) {
  return std::any_of(distribution.native_files.begin(), distribution.native_files.end(),
                     [&](const std::string& path) { return names.contains(last_part(path)); });
}

std::vector<const Distribution*> find_orphans(const EnvironmentCase& examined) {
  const WantedDistributions wanted(examined, false);
  std::vector<const Distribution*> orphans;
  for (const Distribution& distribution : examined.all())
    if (!wanted.contains(distribution)) orphans.push_back(&distribution);
  if (orphans.empty()) return orphans;
  const std::set<std::string> names = needed_names(examined, wanted);
  std::erase_if(orphans, [&](const Distribution* orphan) { return is_needed(*orphan, names); });
  return orphans;
}

// Paths that somebody claims besides those that go.
std::set<std::string> shared_paths(const EnvironmentCase& examined,
                                   const std::set<const Distribution*>& gone) {
  std::set<std::string> shared;
  const auto& rows = examined.files.rows();
  for (const std::vector<uint32_t>& group : examined.files.claimed_twice())
    if (std::any_of(group.begin(), group.end(),
                    [&](uint32_t row) { return !gone.contains(&examined.owner(rows[row])); }))
      shared.insert(examined.files.path_of(rows[group.front()]));
  return shared;
}

// Empty if the framework has none unless it is told.
std::string cache_directory(const TableRow& row, const VariableMap& variables) {
  std::string named = row[1].empty() ? "" : variable_of(variables, std::string(row[1]));
  if (!named.empty() || row[2].empty()) return named;
  const auto or_else = [&](const char* name, const std::string& otherwise) {
    const std::string value = variable_of(variables, name);
    return value.empty() ? otherwise : value;
  };
  const std::string home = variable_of(variables, "HOME");
  if (home.empty()) return "";
  return fmt::format(fmt::runtime(row[2]), fmt::arg("home", home),
                     fmt::arg("cache", or_else("XDG_CACHE_HOME", home + "/.cache")),
                     fmt::arg("tmp", or_else("TMPDIR", "/tmp")),
                     fmt::arg("user", or_else("USER", or_else("LOGNAME", "root"))));
}

class Search {
 public:
  Search(const EnvironmentCase& examined, const FileClaims& claims, const std::string& prefix,
         const std::set<LeftoverKind>& wanted)
      : examined_(examined), claims_(claims), prefix_(prefix), wanted_(wanted) {}

  Result<void> look_into_sites();
  Result<void> look_into_user_site();
  Result<void> look_into_caches();
  std::vector<Leftover> result() { return std::move(found_); }

 private:
  void add(std::vector<Leftover> more) {
    found_.insert(found_.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
  }
  Result<void> look_into_cache(const TableRow& row);

  const EnvironmentCase& examined_;
  const FileClaims& claims_;
  const std::string& prefix_;
  const std::set<LeftoverKind>& wanted_;
  std::vector<Leftover> found_;
};

Result<void> Search::look_into_sites() {
  const std::vector<const Distribution*> orphans = find_orphans(examined_);
  const std::set<std::string> shared = shared_paths(examined_, {orphans.begin(), orphans.end()});
  std::optional<WantedDistributions> asked_for;
  if (!orphans.empty()) asked_for.emplace(examined_, true);
  std::set<std::string> seen;
  for (const std::string& directory : examined_.interpreter.site_directories) {
    const auto site = examined_.tree.real_path(directory);
    if (!site || !is_below(*site, prefix_) || !seen.insert(*site).second) continue;
    auto search = SiteLeftovers::read(examined_, claims_, prefix_, *site);
    if (!search) return tl::unexpected<Error>(search.error());
    search->find_stopped_uninstalls();
    search->find_broken_metadata();
    for (const Distribution* orphan : orphans) {
      if (examined_.tree.real_path(orphan->site) != site) continue;
      Leftover leftover;
      const bool is_asked_for = asked_for->contains(*orphan);
      leftover.kind = is_asked_for ? LeftoverKind::kUnused : LeftoverKind::kOrphan;
      leftover.what = label(*orphan);
      leftover.why = fmt::format("no framework requires it, no library here needs its own, and {}",
                                 is_asked_for ? "it is here because somebody asked for it, or for "
                                                "what requires it, by name"
                                              : "nobody asked for it by name");
      search->find_distribution(*orphan, std::move(leftover), shared);
    }
    search->find_bytecode();
    search->find_unclaimed();
    add(search->result(wanted_));
  }
  return {};
}

// Distributions there that stand before the environment's own in sys.path.
Result<void> Search::look_into_user_site() {
  const std::string& place = examined_.interpreter.user_site;
  const auto site = place.empty() ? std::nullopt : examined_.tree.real_path(place);
  if (!site || is_below(*site, prefix_)) return {};
  std::vector<std::pair<const Distribution*, const Distribution*>> hiding;
  for (const Distribution& mine : examined_.all()) {
    if (examined_.tree.real_path(mine.site) != site) continue;
    for (const Distribution& other : examined_.all())
      if (&other > &mine && normal_name(other.name) == normal_name(mine.name) &&
          other.site != mine.site) {
        hiding.emplace_back(&mine, &other);
        break;
      }
  }
  if (hiding.empty()) return {};
  auto search = SiteLeftovers::read(examined_, claims_, *site, *site);
  if (!search) return tl::unexpected<Error>(search.error());
  std::set<const Distribution*> gone;
  for (const auto& [mine, other] : hiding) gone.insert(mine);
  const std::set<std::string> shared = shared_paths(examined_, gone);
  for (const auto& [mine, other] : hiding) {
    Leftover leftover;
    leftover.kind = LeftoverKind::kUserSite;
    leftover.what = label(*mine) + " in the user's site directory";
    leftover.why = fmt::format(
        "it is imported instead of the environment's own {}; other "
        "environments of Python {}.{} may use it",
        label(*other), examined_.interpreter.major, examined_.interpreter.minor);
    search->find_distribution(*mine, std::move(leftover), shared);
  }
  search->find_bytecode();
  auto found = search->result(wanted_);
  std::erase_if(found, [](const Leftover& l) { return l.kind != LeftoverKind::kUserSite; });
  add(std::move(found));
  return {};
}

// An entry counts by its newest file.
Result<void> Search::look_into_cache(const TableRow& row) {
  const Distribution* framework = examined_.distributions.find(row[0]);
  const std::string directory = framework ? cache_directory(row, examined_.options.variables) : "";
  const auto cache = directory.empty() ? std::nullopt : examined_.tree.real_path(directory);
  Entry installed;
  if (!cache || *cache == "/" || !look_at(framework->metadata, installed)) return {};
  const auto entries = walk_files(*cache, {".cohabit"});
  if (!entries) return tl::unexpected<Error>(entries.error());
  std::map<std::string, int64_t> newest;
  for (const Entry& entry : *entries) {
    int64_t& time = newest[std::string(first_part(entry.path))];
    if (entry.kind != EntryKind::kDirectory) time = std::max(time, entry.modified);
  }
  Leftover leftover;
  leftover.kind = LeftoverKind::kCompileCache;
  leftover.root = *cache;
  leftover.what = std::string(row[3]);
  leftover.why = fmt::format(
      "older than {} here; made again at need, and shared with other "
      "environments",
      label(*framework));
  for (const auto& [name, time] : newest)
    if (time < installed.modified) leftover.paths.push_back(*cache + "/" + name);
  for (const Entry& entry : *entries) {
    if (newest[std::string(first_part(entry.path))] >= installed.modified ||
        entry.kind == EntryKind::kDirectory)
      continue;
    leftover.files++;
    leftover.bytes += entry.size;
  }
  if (!leftover.paths.empty()) found_.push_back(std::move(leftover));
  return {};
}

Result<void> Search::look_into_caches() {
  for (const TableRow& row : table_rows(kCacheTable, 5))
    if (auto done = look_into_cache(row); !done) return done;
  return {};
}

}  // namespace

std::string_view leftover_name(LeftoverKind kind) {
  static constexpr std::string_view kNames[kLeftoverKinds] = {
      "stopped-uninstall", "broken-metadata", "bytecode",     "empty-directory", "orphan", "unused",
      "unclaimed",         "user-site",       "compile-cache"};
  return kNames[static_cast<size_t>(kind)];
}

std::set<LeftoverKind> certain_leftovers() {
  return {LeftoverKind::kStoppedUninstall, LeftoverKind::kBrokenMetadata, LeftoverKind::kBytecode,
          LeftoverKind::kEmptyDirectory, LeftoverKind::kOrphan};
}

std::vector<std::string> compile_caches(const VariableMap& variables) {
  std::vector<std::string> directories;
  for (const TableRow& row : table_rows(kCacheTable, 5))
    if (std::string directory = cache_directory(row, variables); !directory.empty())
      directories.push_back(std::move(directory));
  return directories;
}

Result<std::vector<Leftover>> find_leftovers(const EnvironmentCase& examined,
                                             const FileClaims& claims, const std::string& prefix,
                                             const std::set<LeftoverKind>& wanted) {
  Search search(examined, claims, prefix, wanted);
  if (auto done = search.look_into_sites(); !done) return tl::unexpected<Error>(done.error());
  if (auto done = search.look_into_user_site(); !done) return tl::unexpected<Error>(done.error());
  if (auto done = search.look_into_caches(); !done) return tl::unexpected<Error>(done.error());
  return search.result();
}

}  // namespace cohabit
