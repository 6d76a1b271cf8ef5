#include "findings/site_leftovers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/paths.h"
#include "facts/python/requirement.h"

namespace cohabit {
namespace {

constexpr std::string_view kCompiled = "__pycache__";

bool is_metadata(std::string_view name) {
  return name.ends_with(".dist-info") || name.ends_with(".egg-info") || name.ends_with(".egg") ||
         name.ends_with(".egg-link");
}

// virtualenv puts these beside the packages, and claims nothing.
bool is_of_environment(std::string_view name) {
  return name.starts_with("_virtualenv.") || name == "easy-install.pth" || name == kCompiled ||
         name == ".cohabit";
}

// "a/__pycache__/b.cpython-311.opt-1.pyc" -> "a/b.py"; numba's "b.f-3.py311.nbi" as well.
std::optional<std::string> source_of(const std::string& path) {
  const std::string directory = directory_of(path);
  if (last_part(directory) != kCompiled) return std::nullopt;
  const std::string name = last_part(path);
  const std::string package = directory_of(directory);
  return (package.empty() ? "" : package + "/") + name.substr(0, name.find('.')) + ".py";
}

// "cpython-39" of "b.cpython-39.opt-1.pyc".
std::string_view tag_of(std::string_view path) {
  constexpr std::string_view kTag = ".cpython-";
  const size_t at = path.rfind(kTag);
  if (at == path.npos || !path.ends_with(".pyc")) return "";
  const std::string_view tag = path.substr(at + 1);
  return tag.substr(0, tag.find('.'));
}

}  // namespace

SiteLeftovers::SiteLeftovers(const EnvironmentCase& examined, const FileClaims& claims,
                             std::string root, std::string site)
    : examined_(examined), claims_(claims), root_(std::move(root)), site_(std::move(site)) {
  if (is_below(site_, root_)) below_root_ = site_.substr(root_.size() + 1) + "/";
}

Result<SiteLeftovers> SiteLeftovers::read(const EnvironmentCase& examined, const FileClaims& claims,
                                          const std::string& root, const std::string& site) {
  SiteLeftovers search(examined, claims, root, site);
  auto entries = walk_files(site, {".cohabit"});
  if (!entries) return tl::unexpected<Error>(entries.error());
  search.entries_ = std::move(*entries);
  search.leftover_of_.assign(search.entries_.size(), kNobody);
  for (size_t i = 0; i < search.entries_.size(); i++)
    search.by_path_.emplace(search.entries_[i].path, i);
  search.find_claimed_names();
  return search;
}

std::optional<size_t> SiteLeftovers::index_of(std::string_view path) const {
  const auto found = by_path_.find(path);
  if (found == by_path_.end()) return std::nullopt;
  return found->second;
}

int SiteLeftovers::new_leftover(LeftoverKind kind, std::string what, std::string why) {
  Leftover leftover;
  leftover.kind = kind;
  leftover.root = root_;
  leftover.what = std::move(what);
  leftover.why = std::move(why);
  found_.push_back(std::move(leftover));
  return static_cast<int>(found_.size()) - 1;
}

// The first to ask for an entry has it.
void SiteLeftovers::mark(size_t index, int leftover) {
  if (leftover_of_[index] == kNobody) leftover_of_[index] = leftover;
}

void SiteLeftovers::mark_below(std::string_view path, int leftover) {
  if (const auto own = index_of(path)) mark(*own, leftover);
  const std::string begin = std::string(path) + "/", end = std::string(path) + "0";  // '/' + 1
  const auto before = [](const Entry& entry, const std::string& text) { return entry.path < text; };
  auto at = std::lower_bound(entries_.begin(), entries_.end(), begin, before);
  for (; at != entries_.end() && at->path < end; at++)
    mark(static_cast<size_t>(at - entries_.begin()), leftover);
}

bool SiteLeftovers::is_claimed(const Entry& entry) const {
  return claims_.contains(below_root_ + entry.path);
}

// Distributions without a list of files own what is named like them.
void SiteLeftovers::find_claimed_names() {
  for (const Entry& entry : entries_)
    if (is_claimed(entry)) claimed_names_.emplace(first_part(entry.path));
  for (const Distribution& distribution : examined_.all())
    for (const std::string& package : distribution.owned_packages)
      owned_names_.insert(last_part(package));
  claimed_names_.insert(owned_names_.begin(), owned_names_.end());
}

void SiteLeftovers::find_stopped_uninstalls() {
  for (size_t i = 0; i < entries_.size(); i++) {
    const Entry& entry = entries_[i];
    if (!last_part(entry.path).starts_with('~') || is_claimed(entry) || leftover_of_[i] != kNobody)
      continue;
    mark_below(entry.path,
               new_leftover(LeftoverKind::kStoppedUninstall, entry.path,
                            "pip renames what it is about to remove so; it was stopped there"));
  }
}

void SiteLeftovers::find_broken_metadata() {
  for (const Entry& entry : entries_) {
    const bool is_directory = entry.kind == EntryKind::kDirectory;
    if (!is_directory || entry.path.find('/') != entry.path.npos ||
        !entry.path.ends_with(".dist-info") || entry.path.starts_with('~'))
      continue;
    if (index_of(entry.path + "/METADATA") || index_of(entry.path + "/RECORD")) continue;
    mark_below(entry.path, new_leftover(LeftoverKind::kBrokenMetadata, entry.path,
                                        "it has neither METADATA nor RECORD: no installer knows "
                                        "what it was"));
  }
}

void SiteLeftovers::find_distribution(const Distribution& distribution, Leftover leftover,
                                      const std::set<std::string>& kept) {
  leftover.root = root_;
  found_.push_back(std::move(leftover));
  const int number = static_cast<int>(found_.size()) - 1;
  const auto [begin, end] =
      examined_.files.rows_of(static_cast<uint32_t>(&distribution - examined_.all().data()));
  for (size_t i = begin; i < end; i++) {
    const std::string path = join_normal(site_, examined_.files.rows()[i].record.path);
    if (kept.contains(examined_.files.path_of(examined_.files.rows()[i]))) continue;
    if (!is_below(path, site_)) {
      if (is_below(path, root_) && examined_.tree.stat(path))
        found_[static_cast<size_t>(number)].paths.push_back(path);
    } else if (const auto index = index_of(std::string_view(path).substr(site_.size() + 1))) {
      mark(*index, number);
    }
  }
  mark_below(last_part(distribution.metadata), number);
}

// Python imports a compiled file in __pycache__ only beside its source. It goes with it.
void SiteLeftovers::find_bytecode() {
  const std::string own =
      fmt::format("cpython-{}{}", examined_.interpreter.major, examined_.interpreter.minor);
  int gone = kNobody, foreign = kNobody;
  for (size_t i = 0; i < entries_.size(); i++) {
    const Entry& entry = entries_[i];
    if (entry.kind != EntryKind::kFile || leftover_of_[i] != kNobody) continue;
    const auto source = source_of(entry.path);
    if (!source) continue;
    const auto index = index_of(*source);
    const std::string_view tag = tag_of(entry.path);
    if (index && leftover_of_[*index] != kNobody) {
      mark(i, leftover_of_[*index]);
    } else if (!index) {
      if (gone == kNobody)
        gone = new_leftover(LeftoverKind::kBytecode, "compiled files without a source",
                            "the modules that they were made from are gone");
      mark(i, gone);
    } else if (!tag.empty() && tag != own) {
      if (foreign == kNobody)
        foreign = new_leftover(LeftoverKind::kBytecode, "compiled files of another Python",
                               "this one reads only those with " + own + " in their name");
      mark(i, foreign);
    }
  }
}

std::string SiteLeftovers::why_unclaimed(const std::string& path) const {
  if (path.ends_with(".pth") && path.find('/') == path.npos)
    return "no RECORD lists it, and every Python of the environment reads it at its start";
  if (claimed_names_.contains(std::string(first_part(path))))
    return "no RECORD lists them; they lie among a distribution's own files";
  return "no RECORD lists anything of it";
}

// What is in a distribution's directory is one leftover; what is in none, one by its name.
void SiteLeftovers::find_unclaimed() {
  std::unordered_map<std::string, int> by_name;
  for (size_t i = 0; i < entries_.size(); i++) {
    const Entry& entry = entries_[i];
    const std::string name(first_part(entry.path));
    if (entry.kind == EntryKind::kDirectory || leftover_of_[i] != kNobody || is_claimed(entry) ||
        owned_names_.contains(name) || is_metadata(name) || is_of_environment(name))
      continue;
    const bool is_compiled = source_of(entry.path).has_value();
    const bool is_among_claimed = claimed_names_.contains(name);
    if (is_compiled && is_among_claimed) continue;
    auto [found, is_new] = by_name.emplace(name, kNobody);
    if (is_new)
      found->second =
          new_leftover(LeftoverKind::kUnclaimed, is_among_claimed ? "files in " + name : name,
                       why_unclaimed(entry.path));
    mark(i, found->second);
  }
}

void SiteLeftovers::count_kept(const std::set<LeftoverKind>& wanted) {
  kept_directories_.clear();
  for (size_t i = 0; i < entries_.size(); i++) {
    const int leftover = leftover_of_[i];
    if (entries_[i].kind == EntryKind::kDirectory) continue;
    if (leftover != kNobody && wanted.contains(found_[static_cast<size_t>(leftover)].kind))
      continue;
    for (std::string path = directory_of(entries_[i].path); !path.empty();
         path = directory_of(path))
      if (!kept_directories_.insert(path).second) break;
  }
}

// The topmost directory above `path` of which nothing stays, or `path`.
std::string SiteLeftovers::gone_directory(const std::string& path) const {
  std::string gone = path;
  for (std::string above = directory_of(path); !above.empty() && !kept_directories_.contains(above);
       above = directory_of(above))
    gone = above;
  return gone;
}

// Of which compiled files were all that was left; or nothing, at the top, where it is importable.
void SiteLeftovers::find_empty_directories(const std::set<LeftoverKind>& wanted) {
  const bool with_bytecode = wanted.contains(LeftoverKind::kBytecode);
  for (size_t i = 0; i < entries_.size(); i++) {
    const Entry& entry = entries_[i];
    if (entry.kind != EntryKind::kDirectory || leftover_of_[i] != kNobody ||
        kept_directories_.contains(entry.path) || last_part(entry.path) == kCompiled ||
        is_metadata(entry.path))
      continue;
    const std::string begin = entry.path + "/", end = entry.path + "0";
    bool has_files = false, only_bytecode = true;
    for (size_t k = i + 1; k < entries_.size() && entries_[k].path < end; k++) {
      if (entries_[k].path < begin || entries_[k].kind == EntryKind::kDirectory) continue;
      has_files = true;
      const int leftover = leftover_of_[k];
      only_bytecode = only_bytecode && leftover != kNobody &&
                      found_[static_cast<size_t>(leftover)].kind == LeftoverKind::kBytecode;
    }
    if (!only_bytecode || (has_files && !with_bytecode)) continue;
    // Some wheels bring empty directories whose names nobody can import: "kiwisolver.libs".
    if (!has_files && entry.path.find_first_of("/.-") != entry.path.npos) continue;
    const int number = new_leftover(
        LeftoverKind::kEmptyDirectory, entry.path,
        has_files ? "nothing but compiled files is left of it, and it can still be imported"
                  : "it is empty, and can be imported");
    for (size_t k = i; k < entries_.size() && entries_[k].path < end; k++)
      if (k == i || entries_[k].path >= begin) leftover_of_[k] = number;
  }
}

void SiteLeftovers::add_paths() {
  std::set<std::string> taken;
  for (size_t i = 0; i < entries_.size(); i++) {
    if (leftover_of_[i] == kNobody) continue;
    Leftover& leftover = found_[static_cast<size_t>(leftover_of_[i])];
    if (entries_[i].kind != EntryKind::kDirectory) {
      leftover.files++;
      leftover.bytes += entries_[i].size;
    } else if (kept_directories_.contains(entries_[i].path)) {
      continue;
    }
    std::string path = gone_directory(entries_[i].path);
    if (taken.insert(path).second) leftover.paths.push_back(site_ + "/" + path);
  }
}

std::vector<Leftover> SiteLeftovers::result(const std::set<LeftoverKind>& wanted) {
  count_kept(wanted);
  if (!below_root_.empty()) find_empty_directories(wanted);
  add_paths();
  std::erase_if(found_, [](const Leftover& leftover) { return leftover.paths.empty(); });
  return std::move(found_);
}

}  // namespace cohabit
