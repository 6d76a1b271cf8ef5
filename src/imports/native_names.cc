// A name in a native module becomes an import when a module of that name exists in the environment.
//
// What the machine code imports when the module is initialised is read from it where that can be
// done (initial_code.h); of a Cython module whose import statements could be read, nothing else is
// likely. The rest goes by the names alone:
//
// Dotted names are hardly ever anything else, and nearly all are imported when the module is
// initialised: numpy's C API, the types and functions that one Cython module takes from another,
// pybind11's module_::import. A word without a dot may be an attribute's name as well, so it is
// only possible. Compiled Python ("from package import module") keeps both parts apart: they are
// joined again where the package is the module's own or one whose name is in the file.
//
// Some code asks for a module by its new name and, where that fails, by its old one: of two names
// that differ by leading underscores only the private one, which is newer, is likely.
#include "imports/native_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/rows.h"
#include "base/text.h"
#include "imports/native_strings.h"

namespace cohabit::python {
namespace {

// What no code of the module tells.
constexpr std::string_view kDeclared =
#include "data/native_imports.inc"
    ;

constexpr size_t kMaxPackages = 64;  // whose modules are joined with single words

// Without the underscores that components start with.
std::string public_form(const std::string& name) {
  std::string result;
  for (const char c : name)
    if (c != '_' || (!result.empty() && result.back() != '.')) result += c;
  return result;
}

class Search {
 public:
  Search(const NativeStrings& strings, const ModuleSpec& self, Finder& finder, FindModule find)
      : strings_(strings), self_(self), finder_(finder), find_(std::move(find)) {}

  std::vector<NativeImport> run() {
    add_package(std::string(self_.package()));
    if (strings_.code.statements_known)
      for (const std::string& name : strings_.code.imported) add_imported(name);
    for (const std::string& name : strings_.names) {
      const bool dotted = name.find('.') != std::string::npos;
      // mypyc puts the code of several modules into one.
      const bool group = name.ends_with("__mypyc");
      // Compiled Python that knows NumPy has it imported before it does anything else.
      const bool arrays = strings_.compiled_python && name == "numpy";
      if (!add(name, dotted || group || arrays, group) && dotted && strings_.compiled_python)
        add(std::string(self_.package()) + "." + name, true);
      if (!dotted) words_.insert(name);
      // PyCapsule_Import("datetime.datetime_CAPI") imports the module and takes the capsule.
      if (dotted && name.ends_with("API"))
        add(name.substr(0, name.rfind('.')), true, !strings_.code.statements_known);
    }
    if (!strings_.code.statements_known)
      for (const std::string& name : strings_.code.imported) add_imported(name);
    if (strings_.compiled_python) join_words();
    prefer_private_names();
    return std::move(result_);
  }

 private:
  // True if there is such a module.
  bool add(const std::string& name, bool likely, bool is_sure = false) {
    const std::optional<ModuleSpec> spec = find_(name);
    if (!spec) return false;
    if (spec->is_package()) add_package(name);
    if (spec->kind == ModuleKind::kNamespace || name == self_.name) return true;
    // Cython's own support code names asyncio.coroutines and the like, for when they are needed.
    const std::string standard = finder_.standard_library() + "/";
    if (!is_sure && strings_.compiled_python && standard.size() > 1 &&
        spec->path.starts_with(standard) && spec->path.find("-packages/") == std::string::npos)
      likely = false;
    if (!is_sure && strings_.code.statements_known) likely = false;
    if (!is_sure && !strings_.compiled_python && !is_own(name) &&
        (!is_c_interface(name) || is_for_later(name)))
      likely = false;
    if (found_.insert(name).second) {
      result_.push_back({name, likely, false});
    } else if (likely) {
      for (NativeImport& known : result_) known.likely |= known.name == name;
    }
    return true;
  }

  // What the module's own code imports first of all. Of a capsule's name ("datetime.datetime_CAPI")
  // the module is meant.
  void add_imported(const std::string& written) {
    const std::string name = absolute(written);
    const size_t dot = name.rfind('.');
    if (!add(name, true, true) && dot != std::string::npos) add(name.substr(0, dot), true, true);
    for (NativeImport& known : result_)
      known.stated |= known.name == name && has(strings_.code.stated, written);
  }

  // Names of import statements may be relative.
  std::string absolute(const std::string& name) const {
    const size_t dots = std::min(name.find_first_not_of('.'), name.size());
    if (dots == 0) return name;
    std::string_view package = self_.package();
    for (size_t i = 1; i < dots && !package.empty(); i++)
      package = package.substr(0, std::min(package.rfind('.'), package.size()));
    return dots == name.size() ? std::string(package)
                               : fmt::format("{}.{}", package, name.substr(dots));
  }

  bool is_own(const std::string& name) const {
    return name.substr(0, name.find('.')) == self_.name.substr(0, self_.name.find('.'));
  }

  // Handwritten native code names the modules of others for when they are needed (a converter for
  // their types), but for those whose C interface it takes: private modules, numpy by its capsule.
  bool is_c_interface(const std::string& name) const {
    const size_t dot = name.rfind('.');
    // pybind11 names the package, and joins it when an array comes.
    if (name == "numpy._core" || name == "numpy.core" || name == "numpy.lib") return false;
    if (dot != std::string::npos && name[dot + 1] == '_') return true;
    return name.starts_with("numpy.") && has(strings_.names, "_ARRAY_API");
  }

  // Whether the code that initialises the module, where it can be read, has nothing to do with it.
  bool is_for_later(const std::string& name) const {
    const InitialCode& code = strings_.code;
    return code.known && !has(code.imported, name) && !has(code.mentioned, name);
  }

  static bool has(const std::vector<std::string>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  }

  void add_package(const std::string& name) {
    if (!name.empty() && packages_.size() < kMaxPackages &&
        std::find(packages_.begin(), packages_.end(), name) == packages_.end())
      packages_.push_back(name);
  }

  void join_words() {
    const std::vector<std::string> packages = packages_;
    for (const std::string& package : packages) {
      const std::optional<ModuleSpec> spec = find_(package);
      if (!spec) continue;
      for (const std::string& name : finder_.names_in(spec->search))
        if (!name.starts_with("__") && words_.contains(name))
          add(fmt::format("{}.{}", package, name), package == self_.package());
    }
  }

  void prefer_private_names() {
    for (NativeImport& old : result_)
      for (const NativeImport& other : result_)
        if (old.likely && other.likely && other.name != old.name &&
            other.name.size() > old.name.size() && public_form(other.name) == public_form(old.name))
          old.likely = false;
  }

  const NativeStrings& strings_;
  const ModuleSpec& self_;
  Finder& finder_;
  const FindModule find_;
  std::vector<NativeImport> result_;
  std::unordered_set<std::string> found_, words_;
  std::vector<std::string> packages_;
};

}  // namespace

std::vector<NativeImport> native_imports(const elf::Object& object, Bytes file,
                                         const ModuleSpec& self, Finder& finder) {
  return native_imports(read_native_strings(object, file), self, finder);
}

std::vector<NativeImport> native_imports(const NativeStrings& strings, const ModuleSpec& self,
                                         Finder& finder, FindModule find) {
  if (!find) find = [&finder](std::string_view name) { return finder.find_dotted(name); };
  std::vector<NativeImport> result = Search(strings, self, finder, find).run();
  for (const TableRow& row : table_rows(kDeclared, 3))
    if (row[0] == self.name && find(row[1])) result.push_back({std::string(row[1]), true, true});
  return result;
}

namespace {

// As exported_name in mypyc/namegen.py writes it.
std::string mypyc_letters(std::string_view module) {
  std::string name(module);
  replace_all(name, "___", "___3_");
  replace_all(name, ".", "___");
  return name;
}

}  // namespace

ModulesInside::ModulesInside(const elf::Object& object) {
  constexpr std::string_view kInitOnly = "CPyInitOnly_";
  for (uint64_t i = 0; i < object.symbols.size(); i++) {
    if (object.symbols[i].st_shndx == elf::SHN_UNDEF) continue;
    const std::string_view name = object.symbol_name(static_cast<uint32_t>(i));
    if (name.starts_with(kInitOnly)) names_.insert(name.substr(kInitOnly.size()));
  }
}

bool ModulesInside::contains(std::string_view module) const {
  return !names_.empty() && names_.contains(mypyc_letters(module));
}

std::vector<std::string> own_submodules(const elf::Object& object, Bytes file,
                                        const ModuleSpec& self) {
  return own_submodules(read_native_strings(object, file), self);
}

std::vector<std::string> own_submodules(const NativeStrings& strings, const ModuleSpec& self) {
  std::vector<std::string> result;
  for (const std::string& name : strings.names)
    if (name.size() > self.name.size() + 1 && name.starts_with(self.name + "."))
      result.push_back(name);
  return result;
}

}  // namespace cohabit::python
