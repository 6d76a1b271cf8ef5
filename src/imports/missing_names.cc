// Whether a module certainly lacks a name: `from scipy.linalg import triu`, `numpy.bool`.
//
// Of a module in Python all names are known that its code gives it, unless something unknown gives
// it more (Module::open). Of native code it is known what it cannot name: what neither its file nor
// those of its own libraries have among their texts, nor could make of them.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "imports/interpreter.h"
#include "imports/module_name.h"
#include "imports/native_symbols.h"

namespace cohabit::python {
namespace {

constexpr uint64_t kMostOfOwn = uint64_t{64} << 20;     // of the module's own file
constexpr uint64_t kMostOfUser = uint64_t{8} << 20;     // of a library that uses Python as well
constexpr uint64_t kMostOfOthers = uint64_t{16} << 20;  // of one that does not use Python
constexpr uint64_t kMostExpected = uint64_t{2} << 20;   // of all, for a name that may be missing

bool uses_python(const elf::Object& object) {
  return refers_to(object, [](std::string_view name) { return name.starts_with("Py"); });
}

// Of another file nobody knows how it gives names.
bool is_extension(const elf::Object& object) {
  return uses_python(object) &&
         defines(object, [](std::string_view name) { return name.starts_with("PyInit"); });
}

// Libraries of C, of C++ and of Python: they give nobody's module a name, and have many words.
bool is_runtime(std::string_view library) {
  const std::string_view name = library.substr(library.rfind('/') + 1);
  for (const char* known : {"libc.so", "libm.so", "libdl.so", "librt.so", "libpthread.so",
                            "ld-linux", "libgcc_s.so", "libstdc++.so", "libpython"})
    if (name.starts_with(known)) return true;
  return false;
}

}  // namespace

// A program that asks for it fails. A gap in what we know is likelier where other code may have
// given the module names: functions of its own that native code calls (numpy.dtypes), the modules
// that wait for it (while it runs); and of what could be a submodule that somebody imports.
bool Interpreter::is_surely_without(Module& module, std::string_view name) {
  if (!started_ || module.state != Module::kDone || name.starts_with("__")) return false;
  if (is_refused(module, name)) return true;
  if (may_have(module, name, "AttributeError")) return false;
  if (is_given_names(module)) return false;
  const std::string full = fmt::format("{}.{}", module.spec.name, name);
  return !loaded_module(full) && !finder_.find(full, search_of(&module, module.spec.name));
}

// Whether native code may give names to a module in Python: by functions of the module that do so
// (numpy.dtypes), or where it has the name of a module of its own package among its texts
// (torch.cuda, which gets a class for each type of tensors). A package's outermost module is named
// in many files for other reasons.
bool Interpreter::is_given_names(const Module& module) {
  if (!module.syntax) return false;
  if (functions_write_names(*module.syntax)) return true;
  const std::string& name = module.spec.name;
  if (name.find('.') == std::string::npos) return false;
  return std::any_of(native_modules_.begin(), native_modules_.end(), [&](const Module* native) {
    if (top_of(native->spec.name) != top_of(name)) return false;
    NamingFiles& naming = naming_of(*native);
    if (!naming.strings) return true;
    if (naming.strings->compiled_python) return false;  // it names what it imports
    find_files(naming, *native);
    if (!naming.known) return true;
    return std::any_of(naming.files.begin(), naming.files.end(), [&](FileStrings* file) {
      return file->has(name) || file->may_be_inlined(name);
    });
  });
}

bool Interpreter::is_refused(const Module& module, std::string_view name) const {
  return std::find(module.refused.begin(), module.refused.end(), name) != module.refused.end();
}

// Where a module's __getattr__ raises the AttributeError for a name that nobody knows; line 0: it
// does not, or that is not known. A name for which it does so elsewhere is one that it takes away:
// numpy.bool from 1.24 on.
std::pair<std::string, uint32_t> Interpreter::place_of_refusal(Ref hook) {
  std::pair<std::string, uint32_t> place;
  if (std::exchange(asks_for_refusal_, true)) return place;  // it asks itself for more
  if (!call(hook, Arguments(arena_, {constant("name_that_nobody_knows")})) &&
      raised_is("AttributeError"))
    place = {raised_->file, raised_->line};
  asks_for_refusal_ = false;
  clear_raised();
  return place;
}

bool Interpreter::may_have(const Module& module, std::string_view name, std::string_view error) {
  if (is_refused(module, name)) return false;
  // Of another class, it may have properties.
  if (module.open || module.names.contains("__class__") ||
      loose_packages_.contains(top_of(module.spec.name)))
    return true;
  return std::any_of(module.natives.begin(), module.natives.end(),
                     [&](const Module* native) { return may_name(*native, name, error); });
}

Interpreter::NamingFiles& Interpreter::naming_of(const Module& native) {
  NamingFiles& naming = naming_files_[native.spec.path];
  if (!naming.strings) naming.strings = strings_of(native.spec);
  return naming;
}

bool Interpreter::may_name(const Module& native, std::string_view name, std::string_view error) {
  NamingFiles& naming = naming_of(native);
  if (!naming.strings || naming.has_own(name)) return true;
  find_files(naming, native);
  if (!naming.known) return true;
  // Whoever expects that it may be missing goes on either way: not worth a long search.
  if (naming.size > kMostExpected && expects(error)) return true;
  const auto& files = naming.files;
  const auto [made, is_new] = naming.may_make.try_emplace(keep(name));
  if (is_new)
    made->second = std::any_of(files.begin(), files.end(),
                               [&](FileStrings* file) { return file->may_make(name); });
  return made->second;
}

// Names in the read-only data of the module's own file, and in Cython's tables; a type calls itself
// "numpy.generic".
bool Interpreter::NamingFiles::has_own(std::string_view name) {
  constexpr int kWorthIt = 3;  // searches that cost as much as the set
  const auto last = [](std::string_view full) { return full.substr(full.rfind('.') + 1); };
  const std::vector<std::string>& all = strings->names;
  if (++asked <= kWorthIt)
    return std::any_of(all.begin(), all.end(),
                       [&](const std::string& one) { return last(one) == name; });
  if (own.empty())
    for (const std::string& one : all) own.insert(last(one));
  return own.contains(name);
}

// The files whose texts names of this module's native code may come from.
void Interpreter::find_files(NamingFiles& naming, const Module& native) {
  if (std::exchange(naming.is_sought, true)) return;
  const std::string& path = native.spec.path;
  if (naming.strings->compiled_python) {
    // Cython keeps its strings compressed; all its modules have this one.
    if (!naming.has_own("__test__")) return;
    for (const char* giver : {"globals", "vars", "setattr", "exec", "__dict__"})
      if (naming.has_own(giver)) return;
  }
  const auto& own = images_.open(path, finder_.interpreter().elf_machine);
  if (own.image == kNone || !is_extension(images_[own.image].elf)) return;
  const auto closure = loader_.closure_of(naming.open);
  if (!closure) return;
  for (const std::string& library : *closure) {
    if (is_runtime(library)) continue;
    const auto& probe = images_.open(library, finder_.interpreter().elf_machine);
    FileStrings* file = probe.image == kNone ? nullptr : strings_in(library);
    if (!file) return;
    const bool is_own = library == path;
    if (is_own || uses_python(images_[probe.image].elf)) {
      if (file->size() > (is_own ? kMostOfOwn : kMostOfUser)) return;
    } else if (file->size() > kMostOfOthers) {
      continue;
    }
    naming.files.push_back(file);
    naming.size += file->size();
  }
  naming.known = true;
}

}  // namespace cohabit::python
