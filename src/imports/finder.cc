// The path based finder of CPython 3.8 to 3.14 (importlib/_bootstrap_external.py: PathFinder and
// FileFinder). The first directory that has the name wins, and inside one directory a package with
// __init__ beats a module, an extension beats source, source beats bytecode. A directory without
// __init__ is only remembered: if no later directory has the name properly, all those found
// together are one namespace package.
//
// Each directory is listed once and asked from memory, as FileFinder does: site-packages of a large
// environment is asked for thousands of names that are not there.
#include "imports/finder.h"

#include <fmt/format.h>

#include <algorithm>

#include "imports/builtins.h"
#include "imports/module_name.h"

namespace cohabit::python {
namespace {

constexpr size_t kMaxName = 1024;     // of a module, in full
constexpr size_t kMaxPortions = 256;  // of a namespace package

// Imported by every start of the interpreter (site and what it needs), or frozen into it.
constexpr std::string_view kStartUp[] = {
    "__main__",    "_collections_abc", "_sitebuiltins",
    "abc",         "codecs",           "encodings",
    "genericpath", "importlib",        "io",
    "os",          "posixpath",        "site",
    "stat",        "zipimport",
};

// What can stand in an import statement, more or less: other names are no news to anybody.
bool is_plain(std::string_view name) {
  return !name.empty() && std::none_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == '/' || c == '.' || c == 0x7f;
  });
}

}  // namespace

Finder::Finder(const Tree& tree, const Interpreter& interpreter,
               std::optional<std::string> directory)
    : tree_(tree), interpreter_(interpreter), zips_(tree) {
  if (directory) path_.push_back(*directory);
  own_entries_ = path_.size();
  path_.insert(path_.end(), interpreter.module_path.begin(), interpreter.module_path.end());
  suffixes_ = cohabit::python::extension_suffixes(tree, interpreter);
  for (const std::string& suffix : suffixes_) loaders_.emplace_back(suffix, ModuleKind::kNative);
  loaders_.emplace_back(".py", ModuleKind::kSource);
  loaders_.emplace_back(".pyc", ModuleKind::kBytecode);
  builtins_ = builtin_modules(tree, interpreter);
}

// "" on sys.path is the current directory.
std::string Finder::place(const std::string& entry) const {
  if (!entry.empty()) return entry;
  const std::string current = tree_.real_path(".").value_or("/");
  return current.empty() ? "/" : current;
}

Finder::Directory& Finder::look_into(const std::string& directory) {
  const auto known = directories_.find(directory);
  if (known != directories_.end()) return known->second;
  Names names = tree_.list(directory);
  const bool is_zipped = names.empty();
  if (is_zipped) names = zips_.list(directory);
  return directories_.emplace(directory, Directory{std::move(names), {}, is_zipped}).first->second;
}

namespace {

// Whether any of these sorted names starts so.
bool any_starts(const std::vector<std::string>& names, std::string_view start) {
  const auto at = std::lower_bound(names.begin(), names.end(), start);
  return at != names.end() && at->starts_with(start);
}

bool has(const std::vector<std::string>& names, std::string_view name) {
  const auto at = std::lower_bound(names.begin(), names.end(), name);
  return at != names.end() && *at == name;
}

}  // namespace

bool Finder::is_file(const std::string& path) const {
  const auto status = tree_.stat(path);
  return status ? status->is_regular() : zips_.is_file(path);
}

namespace {

std::string below(const std::string& directory, const std::string& name) {
  return fmt::format("{}/{}", directory, name);
}

}  // namespace

bool Finder::is_directory(const std::string& path) const {
  const auto status = tree_.stat(path);
  return status ? status->is_directory() : zips_.is_directory(path);
}

std::optional<ZipModules::Source> Finder::read_source(const std::string& path,
                                                      uint64_t limit) const {
  if (auto text = tree_.read_text(path, limit)) return ZipModules::Source{std::move(*text), false};
  return zips_.read(path, limit);
}

// directory/stem with the first suffix that there is.
bool Finder::find_file(const std::string& directory, std::string_view stem, Found& found) {
  const Directory& here = look_into(directory);
  const Names& names = here.names;
  if (!any_starts(names, stem)) return false;
  for (const auto& [suffix, kind] : loaders_) {
    if (here.is_zipped && kind == ModuleKind::kNative) continue;
    const std::string file = std::string(stem) + suffix;
    if (!has(names, file)) continue;
    std::string path = below(directory, file);
    if (!is_file(path)) continue;
    found.kind = kind;
    found.path = std::move(path);
    return true;
  }
  return false;
}

std::optional<Finder::Found> Finder::look_for(const std::string& directory, std::string_view last) {
  Found found{ModuleKind::kNamespace, "", false};
  const bool here = has(list(directory), last);
  const std::string package = below(directory, std::string(last));
  if (here && find_file(package, "__init__", found)) {
    found.is_package = true;
    return found;
  }
  if (find_file(directory, last, found) || (here && is_directory(package))) return found;
  return std::nullopt;
}

// False: not here, or only a portion of a namespace, which is added to spec.search. Native code
// names "cuda.bindings.driver" by the thousand: what is there is looked at once.
bool Finder::find_in(const std::string& directory, std::string_view last, ModuleSpec& spec) {
  Directory& here = look_into(directory);
  auto known = here.found.find(last);
  if (known == here.found.end()) {
    if (!any_starts(here.names, last)) return false;  // most questions end here
    auto found = look_for(directory, last);
    if (!found) return false;
    known = here.found.emplace(last, std::move(*found)).first;
  }
  const Found& found = known->second;
  if (found.kind == ModuleKind::kNamespace) {
    if (spec.search.size() < kMaxPortions) spec.search.push_back(below(directory, known->first));
    return false;
  }
  spec.kind = found.kind;
  spec.path = found.path;
  spec.search.clear();
  if (found.is_package) spec.search.push_back(below(directory, known->first));
  return true;
}

std::optional<ModuleSpec> Finder::find(std::string_view name,
                                       const std::vector<std::string>& search) {
  const std::string_view last = last_of(name);
  if (name.size() > kMaxName || !is_plain(last)) return std::nullopt;
  ModuleSpec spec;
  const bool found = std::any_of(search.begin(), search.end(), [&](const std::string& entry) {
    return entry.empty() ? find_in(place(entry), last, spec) : find_in(entry, last, spec);
  });
  if (!found && spec.search.empty()) return std::nullopt;
  if (!found) spec.kind = ModuleKind::kNamespace;
  spec.name = name;
  return spec;
}

std::optional<ModuleSpec> Finder::find_top_level(std::string_view name) {
  if (is_builtin(name) || name.starts_with("_frozen_importlib")) {
    ModuleSpec spec;
    spec.name = name;
    return spec;
  }
  const bool starts =
      std::find(std::begin(kStartUp), std::end(kStartUp), name) != std::end(kStartUp);
  if (!starts || own_entries_ == 0) return find(name, path_);
  return find(name, interpreter_.module_path);
}

std::optional<ModuleSpec> Finder::find_dotted(std::string_view name) {
  std::optional<ModuleSpec> spec;
  if (name.size() > kMaxName) return spec;
  for (size_t end = 0; end != std::string_view::npos;) {
    end = name.find('.', end == 0 ? 0 : end + 1);
    const std::string_view part = name.substr(0, end);
    if (!spec)
      spec = find_top_level(part);
    else
      spec = find(part, spec->search);
    if (!spec) return spec;
  }
  return spec;
}

// inspect.getmodulename; empty if the file is no module.
std::string Finder::module_name(std::string_view file) const {
  std::string_view best;
  for (const auto& [suffix, kind] : loaders_)
    if (suffix.size() > best.size() && file.ends_with(suffix)) best = suffix;
  if (best.empty()) return "";
  return std::string(file.substr(0, file.size() - best.size()));
}

bool Finder::has_init(const std::string& package) {
  const Names& names = list(package);
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return module_name(name) == "__init__"; });
}

std::vector<std::string> Finder::names_in(const std::vector<std::string>& search) {
  std::vector<std::string> result;
  for (const std::string& entry : search) {
    const std::string directory = place(entry);
    for (const std::string& file : Names(list(directory))) {
      std::string name = module_name(file);
      if (name.empty() && is_plain(file) && has_init(below(directory, file))) name = file;
      if (name != "__init__" && is_plain(name)) result.push_back(name);
    }
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

bool Finder::is_builtin(std::string_view name) const {
  return std::binary_search(builtins_.begin(), builtins_.end(), name);
}

}  // namespace cohabit::python
