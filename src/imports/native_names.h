// Which modules an extension module imports from native code.
//
// PyImport_ImportModule and its relatives take names, and names are strings in the file: those of
// plain C and pybind11 as whole strings in .rodata, those of Cython in its table of interned
// names. Not every such string is imported when the module is initialised, so each comes with how
// sure we are.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "facts/elf/object.h"
#include "imports/finder.h"
#include "imports/native_strings.h"

namespace cohabit::python {

struct NativeImport {
  std::string name;     // full module name that exists in this environment
  bool likely = false;  // imported when the module is initialised; else perhaps later or never
  bool stated = false;  // by an import statement that was read
};

// In the order of the strings. `self` is the extension's own module (relative names of Cython, and
// so that it is left out). Reads the file's read-only data: not more than a few MB of it.
std::vector<NativeImport> native_imports(const elf::Object& object, Bytes file,
                                         const ModuleSpec& self, Finder& finder);
// Modules that the extension creates itself, as submodules of its own: names "<self>.<x>" in its
// strings that no file provides.
std::vector<std::string> own_submodules(const elf::Object& object, Bytes file,
                                        const ModuleSpec& self);

// Modules whose code mypyc has put into this library and that it loads without their files: those
// of its functions CPyInitOnly_<module>. Older versions have none and import each by its file.
class ModulesInside {
 public:
  explicit ModulesInside(const elf::Object& object);
  bool contains(std::string_view module) const;

 private:
  std::unordered_set<std::string_view> names_;  // in mypyc's letters; into the object's strings
};

// The same, when the strings are there already. `find`, if given, finds the modules: a package that
// is imported may have another __path__ than its files tell.
using FindModule = std::function<std::optional<ModuleSpec>(std::string_view dotted)>;
std::vector<NativeImport> native_imports(const NativeStrings& strings, const ModuleSpec& self,
                                         Finder& finder, FindModule find = nullptr);
std::vector<std::string> own_submodules(const NativeStrings& strings, const ModuleSpec& self);

}  // namespace cohabit::python
