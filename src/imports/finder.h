// Where Python finds modules: sys.path, the path based finder, and what is there at start-up.
// As CPython 3.8 to 3.14 do (importlib/_bootstrap_external.py, site.py), from files alone.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/tree.h"
#include "facts/python/interpreter.h"
#include "imports/module_kind.h"
#include "imports/zip_modules.h"

namespace cohabit::python {

struct ModuleSpec {
  std::string name;  // full: "numpy.linalg"
  ModuleKind kind = ModuleKind::kBuiltin;
  std::string path;                 // of the file; empty for kBuiltin and kNamespace
  std::vector<std::string> search;  // __path__ of a package; empty: not a package
  bool is_package() const { return !search.empty(); }
  // __package__, which relative imports start from.
  std::string_view package() const {
    const size_t end = is_package() ? name.size() : name.rfind('.');
    return end == name.npos ? std::string_view() : std::string_view(name).substr(0, end);
  }
};

using cohabit::PthLine;  // a line of a .pth file that site executes

class Finder {
 public:
  // `directory` is what stands first in sys.path: the script's directory, or "" for -c and -m (the
  // current directory, as seen in the tree); nothing with -P, -I or safe_path.
  Finder(const Tree& tree, const Interpreter& interpreter,
         std::optional<std::string> directory = std::nullopt);

  const Tree& tree() const { return tree_; }
  const Interpreter& interpreter() const { return interpreter_; }
  // sys.path after site has run: existing entries only, .pth directories included.
  const std::vector<std::string>& path() const { return path_; }
  const std::vector<PthLine>& pth_lines() const { return interpreter_.pth_lines; }

  // The module `name` (full, "a.b.c"; only its last part is looked for) in these directories, which
  // are sys.path or the parent's __path__. Directories are listed once; archives
  // are looked into. Finders that packages install are not followed.
  std::optional<ModuleSpec> find(std::string_view name, const std::vector<std::string>& search);
  // The same for a top-level name: built-in modules first, then path(). What start-up imports is
  // not sought in the first directory, which is not yet there at that time.
  std::optional<ModuleSpec> find_top_level(std::string_view name);
  // The whole way from the top, without running the parents (their __path__ as found).
  std::optional<ModuleSpec> find_dotted(std::string_view name);
  // What pkgutil.iter_modules would give: names (last part) in these directories, sorted.
  std::vector<std::string> names_in(const std::vector<std::string>& search);
  // sys.builtin_module_names: PyInit_* of the executable or libpython, from its symbol table or, in
  // a stripped static build, from its strings.
  bool is_builtin(std::string_view name) const;
  // The directory of extension modules of the standard library (lib-dynload) and of its sources.
  const std::string& standard_library() const { return interpreter_.standard_library; }
  // A module's file, also one in an archive.
  std::optional<ZipModules::Source> read_source(const std::string& path, uint64_t limit) const;
  // EXTENSION_SUFFIXES of this interpreter: ".cpython-312-x86_64-linux-gnu.so", ".abi3.so", ".so".
  const std::vector<std::string>& extension_suffixes() const { return suffixes_; }

 private:
  using Names = std::vector<std::string>;  // sorted

  // What a name is in one directory.
  struct Found {
    ModuleKind kind;   // kNamespace: a portion of one, or no more than that
    std::string path;  // of the file
    bool is_package = false;
  };

  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  template <class T>
  using ByText = std::unordered_map<std::string, T, TextHash, std::equal_to<>>;

  struct Directory {
    Names names;
    ByText<Found> found;     // what was asked for and is there
    bool is_zipped = false;  // of an archive
  };

  Directory& look_into(const std::string& directory);
  const Names& list(const std::string& directory) { return look_into(directory).names; }
  bool is_file(const std::string& path) const;
  bool is_directory(const std::string& path) const;
  std::string place(const std::string& entry) const;
  bool find_file(const std::string& directory, std::string_view stem, Found& found);
  std::optional<Found> look_for(const std::string& directory, std::string_view last);
  bool find_in(const std::string& directory, std::string_view last, ModuleSpec& spec);
  bool has_init(const std::string& package);
  std::string module_name(std::string_view file) const;

  const Tree& tree_;
  const Interpreter& interpreter_;
  std::vector<std::string> path_;
  size_t own_entries_ = 0;  // leading entries of path_ that start-up does not see
  std::vector<std::string> suffixes_;
  std::vector<std::pair<std::string, ModuleKind>> loaders_;  // suffixes in FileFinder's order
  std::vector<std::string> builtins_;                        // sorted
  ByText<Directory> directories_;
  ZipModules zips_;
};

}  // namespace cohabit::python
