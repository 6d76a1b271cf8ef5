// Whether a module certainly lacks a name: `from scipy.linalg import triu`, `numpy.bool`.
//
// Of a module in Python all names are known that its code gives it, unless something unknown gives
// it more (Module::open). Of native code it is known what it cannot name: what neither its file nor
// those of its own libraries have among their texts, nor could make of them.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "imports/builtins.h"
#include "imports/interpreter.h"
#include "imports/interpreter_names.h"
#include "imports/module_name.h"
#include "imports/native_symbols.h"
#include "imports/scanner.h"

namespace cohabit::python {
namespace {

constexpr uint64_t kMostOfOwn = uint64_t{64} << 20;     // of the module's own file
constexpr uint64_t kMostOfUser = uint64_t{64} << 20;    // of a library that uses Python as well
constexpr uint64_t kMostOfOthers = uint64_t{16} << 20;  // of one that does not use Python
constexpr uint64_t kMostOfSource = uint64_t{8} << 20;   // of a module of the standard library
constexpr uint64_t kMostExpected = uint64_t{2} << 20;   // of all, for a name that may be missing

bool uses_python(const elf::Object& object) {
  return refers_to(object, [](std::string_view name) { return name.starts_with("Py"); });
}

// Of another file nobody knows how it gives names.
bool is_extension(const elf::Object& object) {
  return defines(object, [](std::string_view name) { return name.starts_with("PyInit"); });
}

// Libraries of C, of C++ and of Python: they give nobody's module a name, and have many words.
bool is_runtime(std::string_view library) {
  const std::string_view name = library.substr(library.rfind('/') + 1);
  for (const char* known : {"libc.so", "libm.so", "libdl.so", "librt.so", "libpthread.so",
                            "ld-linux", "libgcc_s.so", "libstdc++.so", "libpython"})
    if (name.starts_with(known)) return true;
  return false;
}

// `as_attribute`: behind a dot too.
bool has_word(std::string_view text, std::string_view word, bool as_attribute) {
  const auto is_part = [&](size_t at) {
    return at < text.size() && text[at] != '.' && is_name_character(text[at]);
  };
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const bool is_whole = (at == 0 || !is_part(at - 1)) && !is_part(at + word.size());
    if (is_whole && (as_attribute || at == 0 || text[at - 1] != '.')) return true;
  }
  return false;
}

bool has_any_word(std::string_view source, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return has_word(source, word, true); });
}

// Whether code may bind names that it does not name; ._convert and ._convert_ are enum's.
bool computes_names(std::string_view source) {
  return source.find("._convert") != source.npos ||
         has_any_word(source, {"globals", "vars", "locals", "exec"});
}

// Whether functions may give their module what only a text of theirs names: they have to come by
// it.
bool sets_by_text(std::string_view source) {
  return has_any_word(source, {"modules", "f_globals", "__getattr__"});
}

bool starts_with_word(std::string_view line, std::string_view word) {
  return line.starts_with(word) &&
         (line.size() == word.size() || !is_name_character(line[word.size()]));
}

// A string and nothing else, as documentation is.
bool is_string_statement(std::string_view line) {
  Cursor cursor{line};
  if (!line.empty() && std::string_view("rRuU").find(line[0]) != line.npos) cursor.skip();
  const char quote = cursor.peek();
  return (quote == '"' || quote == '\'') && skip_string(cursor) && cursor.at_end();
}

// Where a module's source may name what the module gets. Left out is what it says to readers only
// (comments, strings that are statements), and if it is not wanted `whole`, what stands in
// functions and is not declared global. (What stands in a class, enum's decorators may give it.)
std::string naming_code(std::string_view source, bool whole) {
  std::string code;
  Cursor cursor{source};
  constexpr int64_t kModule = -1;
  int64_t scope = kModule;  // or the column of the def that a line stands in
  while (!cursor.at_end()) {
    const int64_t column = skip_indentation(cursor).column;
    const uint32_t begin = cursor.at;
    const std::string_view line = source.substr(begin, skip_logical_line(cursor) - begin);
    if (line.empty() || line[0] == '#' || is_string_statement(line)) continue;
    if (scope != kModule && column > scope) {
      if (!starts_with_word(line, "global")) continue;
    } else {
      scope = kModule;
      for (const char* word : {"def", "async"})
        if (!whole && starts_with_word(line, word)) scope = column;
    }
    code.append(line).append("\n");
  }
  return code;
}

// Those whose names all go into a module, its functions left out.
void add_star_imports(Block block, std::vector<const Stmt*>& found) {
  for (const Stmt* statement : block) {
    if (imports_all(*statement)) found.push_back(statement);
    if (statement->kind != StmtKind::kFunction && statement->kind != StmtKind::kClass)
      for_each_block(*statement, [&](Block inner) { add_star_imports(inner, found); });
  }
}

// Whether the name is a text of one of the files, or code may make it of them.
template <class Files>
bool any_may_make(const Files& files, std::string_view name) {
  const auto any = [&](auto is_so) { return std::any_of(files.begin(), files.end(), is_so); };
  return any([&](FileStrings* file) { return file->has(name); }) ||
         any([&](FileStrings* file) { return file->may_make(name); });
}

}  // namespace

// A program that asks for it fails. A gap in what we know is likelier where other code may have
// given the module names: functions of its own that native code calls (numpy.dtypes), the modules
// that wait for it (while it runs); and of what could be a submodule that somebody imports.
bool Interpreter::is_surely_without(Module& module, std::string_view name) {
  if (!started_ || module.state != Module::kDone || is_of_any_module(name)) return false;
  if (is_refused(module, name)) return true;
  if (may_have(module, name, "AttributeError")) return false;
  if (is_given(module, name)) return false;
  const std::string full = fmt::format("{}.{}", module.spec.name, name);
  return !loaded_module(full) && !finder_.find(full, search_of(&module, module.spec.name));
}

// Whether what is not followed may give the module this name.
bool Interpreter::is_given(Module& module, std::string_view name) {
  return may_give(module, name) && !interpreter_lacks(module, name);
}

// Whether native code may give a name to a module in Python: by functions of the module that do so
// (numpy.dtypes), or where it has the name of a module of its own package among its texts
// (torch.cuda, which gets a class for each type of tensors) and may make this one of its texts. A
// package's outermost module is named in many files for other reasons.
bool Interpreter::may_give(const Module& module, std::string_view given) {
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
    const bool is_named = std::any_of(
        naming.files.begin(), naming.files.end(),
        [&](FileStrings* file) { return file->has_part(name) || file->may_be_inlined(name); });
    return is_named &&
           (naming.has_own(given) || any_may_make(naming.files, given) || may_join(naming, given));
  });
}

// Whether code may make a name of two texts: "Float" and "Tensor", which may be the end of another.
bool Interpreter::may_join(NamingFiles& naming, std::string_view name) {
  constexpr size_t kLeast = 2;
  const auto any = [&](auto is_so) {
    return std::any_of(naming.files.begin(), naming.files.end(), is_so);
  };
  for (size_t i = kLeast; i + kLeast <= name.size(); i++) {
    const std::string_view first = name.substr(0, i), rest = name.substr(i);
    const bool begins =
        std::isupper(static_cast<unsigned char>(rest[0])) != 0 || first.back() == '_';
    if (begins &&
        any([&](FileStrings* file) { return file->has(first) || file->may_be_inlined(first); }) &&
        any([&](FileStrings* file) { return file->may_make(rest); }))
      return true;
  }
  return false;
}

bool Interpreter::is_refused(const Module& module, std::string_view name) const {
  return std::find(module.refused.begin(), module.refused.end(), name) != module.refused.end();
}

// Whether a module that comes with the interpreter has this name in none of the ways in which it
// may get one: its own source names all that its code makes; so do those of its submodules
// (multiprocessing takes what an object in one of them has) and those that it takes all names of.
// Where these compute names, or take those of a built-in module, they may be of native code as
// well. `site` gives names to builtins and sys.
bool Interpreter::interpreter_lacks(Module& module, std::string_view name) {
  const bool is_builtin = module.spec.kind == ModuleKind::kBuiltin;
  // Code that is frozen keeps its names otherwise. Names with underscores are given by the import.
  if (!started_ || module.state != Module::kDone || is_of_any_module(name) ||
      finder_.interpreter().implementation != "CPython" ||
      (is_builtin ? module.spec.name.starts_with("_frozen") : !is_standard(&module)))
    return false;
  if (!is_builtin) return !may_name_in_source(module, name);
  Module* site = as<Module>(loaded_module("site"), Type::kModule);
  return !may_name_in_native_code(name) && site && !may_name_in_source(*site, name);
}

bool Interpreter::may_name_in_native_code(std::string_view name) {
  if (!interpreter_names_) {
    interpreter_names_.emplace();
    const std::string path = native_code_of(tree(), finder_.interpreter());
    const auto& probe = images_.open(path, finder_.interpreter().elf_machine);
    if (probe.image != kNone)
      *interpreter_names_ =
          images_[probe.image].extract("names of an interpreter", names_of_interpreter);
  }
  return interpreter_names_->empty() || python::may_name(*interpreter_names_, name);
}

bool Interpreter::may_name_in_source(Module& module, std::string_view name) {
  struct Asked {
    Module* module;
    bool is_asked_by_code;  // which computes names from what it finds there
  };
  std::vector<Asked> asked = {{&module, false}};
  const auto add = [&](Ref value, bool by_code) {
    auto* other = as<Module>(value, Type::kModule);
    if (other && std::none_of(asked.begin(), asked.end(),
                              [&](const Asked& one) { return one.module == other; }))
      asked.push_back({other, by_code});
  };
  const std::string& own = module.spec.name;
  const auto is_below = [&](std::string_view full) {  // thousands are asked: the dot tells most
    return full.size() > own.size() && full[own.size()] == '.' && full.starts_with(own);
  };
  for (const auto& [key, value] : sys_modules_->items)
    if (const std::string_view* full = text_of(key); full && is_below(*full)) add(value, false);
  for (size_t i = 0; i < asked.size(); i++) {
    const auto [one, by_code] = asked[i];
    if (one->spec.kind == ModuleKind::kNative && may_name(*one, name, "AttributeError"))
      return true;
    if (one->spec.kind == ModuleKind::kBuiltin && may_name_in_native_code(name)) return true;
    if (one->spec.kind != ModuleKind::kSource) continue;
    const auto source = finder_.read_source(one->spec.path, kMostOfSource);
    if (!one->syntax || !source) return true;
    const bool computes = computes_names(source->text);
    const bool any = by_code || computes;
    if (has_word(source->text, name, any) &&
        has_word(naming_code(source->text, any || sets_by_text(source->text)), name, any))
      return true;
    std::vector<const Stmt*> stars;
    add_star_imports(one->syntax->module(), stars);
    for (const Stmt* star : stars)
      if (const auto from = absolute_name(one, star->level, star->name))
        add(loaded_module(*from), by_code);
    if (computes && !by_code)
      for (const auto& [bound, value] : one->names) add(value, true);
  }
  return false;
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

bool Interpreter::may_have(Module& module, std::string_view name, std::string_view error) {
  if (is_refused(module, name)) return false;
  // Of another class, it may have properties.
  if (module.open || module.names.contains("__class__")) return true;
  if ((module.partly_seen || loose_packages_.contains(top_of(module.spec.name))) &&
      !interpreter_lacks(module, name))
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
  // Nor one of what belongs to others, and is large.
  if (std::any_of(files.begin() + !files.empty(), files.end(),
                  [](FileStrings* file) { return file->size() > kMostOfOthers; }))
    return true;
  const auto [made, is_new] = naming.may_make.try_emplace(keep(name));
  if (is_new) made->second = any_may_make(files, name);
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
  bool use_python = false;  // torch._C leaves it to a library of its own
  for (const std::string& library : *closure) {
    if (is_runtime(library)) continue;
    const auto& probe = images_.open(library, finder_.interpreter().elf_machine);
    FileStrings* file = probe.image == kNone ? nullptr : strings_in(library);
    if (!file) return;
    const bool is_own = probe.image == own.image;  // by whichever path it was opened first
    const bool is_user = uses_python(images_[probe.image].elf);
    use_python = use_python || is_user;
    if (is_own || is_user) {
      if (file->size() > (is_own ? kMostOfOwn : kMostOfUser)) return;
    } else if (file->size() > kMostOfOthers) {
      continue;
    }
    naming.files.push_back(file);
    naming.size += file->size();
  }
  naming.known = use_python;
}

}  // namespace cohabit::python
