// importlib, pkgutil, and the native functions through which Python opens libraries.
#include <fmt/format.h>

#include <algorithm>

#include "base/rows.h"
#include "facts/elf/object.h"
#include "facts/host/ldcache.h"
#include "imports/models.h"

namespace cohabit::python {
namespace {

using I = Interpreter;
using A = Arguments;

std::string_view trimmed_dots(std::string_view name, uint32_t* level) {
  *level = 0;
  while (*level < name.size() && name[*level] == '.') (*level)++;
  return name.substr(*level);
}

// importlib.util.resolve_name
std::optional<std::string> resolve(std::string_view name, Ref package) {
  uint32_t level = 0;
  const std::string_view rest = trimmed_dots(name, &level);
  if (level == 0) return std::string(name);
  const std::string_view* text = text_of(package);
  if (!text) return std::nullopt;
  std::string base(*text);
  for (uint32_t i = 1; i < level; i++) {
    const size_t dot = base.rfind('.');
    if (dot == std::string::npos) return std::nullopt;
    base.resize(dot);
  }
  return rest.empty() ? base : base + "." + std::string(rest);
}

Ref import_module(I& in, Ref, const A& a) {
  const std::string_view* name = text_of(a.get(0, "name"));
  if (!name) {
    in.undecided("the name of a module that is imported");
    in.count_effect();
    return in.opaque();
  }
  const auto full = resolve(*name, a.get(1, "package"));
  if (!full) return in.opaque();
  Ref module = in.import_dotted(*full);
  return module ? module : in.forgive_import(a.get(0, "name"));
}

Ref reload(I& in, Ref, const A& a) {
  return a.get(0) ? a.get(0) : in.opaque();
}

std::vector<std::string> texts_of(Ref value) {
  std::vector<std::string> result;
  if (Sequence* list = sequence_of(value))
    for (Ref item : list->items)
      if (const std::string_view* text = text_of(item)) result.emplace_back(*text);
  return result;
}

// A loader of importlib.machinery, for one module.
Instance* loader_of(I& in, Ref name, Ref path) {
  Instance* loader = in.instance_of("Loader");
  loader->names["name"] = name;
  loader->names["path"] = path;
  loader->open = true;
  return loader;
}

Instance* describe(I& in, std::string_view name, std::string_view path) {
  Instance* spec = in.instance_of("ModuleSpec");
  Ref full = in.string(name), file = path.empty() ? in.none() : in.string(path);
  spec->names["name"] = full;
  spec->names["origin"] = file;
  spec->names["loader"] = loader_of(in, full, file);
  spec->names["submodule_search_locations"] = in.none();
  spec->names["has_location"] = in.boolean(!path.empty());
  spec->open = true;
  return spec;
}

Ref described(I& in, const ModuleSpec& spec) {
  Instance* result = describe(in, spec.name, spec.path);
  if (spec.is_package()) {
    auto* search = in.list({});
    for (const std::string& directory : spec.search) search->items.push_back(in.string(directory));
    result->names["submodule_search_locations"] = search;
  }
  return result;
}

Ref find_spec(I& in, Ref, const A& a) {
  const std::string_view* name = text_of(a.get(0, "name"));
  if (!name) return in.opaque();
  const auto full = resolve(*name, a.get(1, "package"));
  if (!full) return in.opaque();
  if (Module* loaded = as<Module>(in.loaded_module(*full), Type::kModule)) {
    if (Ref spec = loaded->names.get("__spec__")) return spec;
  }
  const auto spec = in.find_spec(*full);
  if (!spec) {
    if (!in.raised()) return in.none_for_missing(*full);
    if (in.raised_is("ModuleNotFoundError") && full->find('.') == std::string::npos)
      in.clear_raised();
    return in.raised() ? nullptr : in.none_for_missing(*full);
  }
  return described(in, *spec);
}

Ref spec_from_file(I& in, Ref, const A& a) {
  const std::string_view *name = text_of(a.get(0, "name")), *path = text_of(a.get(1, "location"));
  if (!name || !path) return in.opaque();
  Instance* spec = describe(in, *name, *path);
  // Any other loads the file as Python does, for all that is known.
  if (Instance* loader = as<Instance>(a.get(9, "loader"), Type::kInstance))
    if (as<Function>(in.class_attribute(loader->of, "exec_module"), Type::kFunction))
      spec->names["loader"] = loader;
  if (Ref search = a.get(9, "submodule_search_locations")) {
    spec->names["submodule_search_locations"] = search;
  } else if (const size_t slash = path->rfind('/');
             slash != std::string::npos && path->substr(slash + 1) == "__init__.py") {
    spec->names["submodule_search_locations"] = in.list({in.string(path->substr(0, slash))});
  }
  return spec;
}

Ref spec_from_loader(I& in, Ref, const A& a) {
  const std::string_view* name = text_of(a.get(0, "name"));
  if (!name) return in.opaque();
  Ref loader = a.get(1, "loader");
  Instance* known = as<Instance>(loader, Type::kInstance);
  const std::string_view* path = known ? text_of(known->names.get("path")) : nullptr;
  Instance* spec = describe(in, *name, path ? *path : "");
  if (loader) spec->names["loader"] = loader;
  return spec;
}

bool is_extension(I& in, std::string_view path) {
  const auto& suffixes = in.finder().extension_suffixes();
  return std::any_of(suffixes.begin(), suffixes.end(),
                     [&](const std::string& suffix) { return path.ends_with(suffix); });
}

Ref module_from_spec(I& in, Ref, const A& a) {
  auto spec = file_spec(in, a.get(0, "spec"));
  if (!spec) spec = namespace_spec(a.get(0, "spec"));
  if (!spec) return in.opaque();
  Module* module = in.make_module(*spec);
  module->names["__name__"] = in.constant(module->spec.name);
  if (!module->spec.path.empty()) module->names["__file__"] = in.constant(module->spec.path);
  module->names["__spec__"] = a.get(0, "spec");
  module->names["__package__"] = in.constant(module->package);
  if (spec->is_package()) {
    auto* search = in.list({});
    for (const std::string& directory : spec->search) search->items.push_back(in.string(directory));
    module->names["__path__"] = search;
  }
  if (spec->kind == ModuleKind::kNative) {
    Ref loaded = in.load_spec(*spec);
    return loaded;
  }
  return module;
}

// types.ModuleType(name, doc=None), bound or by its class.
Ref module_init(I& in, Ref self, const A& a) {
  const size_t first = self ? 0 : 1;
  Instance* module = as<Instance>(self ? self : a.get(0), Type::kInstance);
  Ref name = a.get(first, "name");
  if (!module || !name) return in.none();
  module->names["__name__"] = name;
  module->names["__doc__"] = a.get(first + 1, "doc") ? a.get(first + 1, "doc") : in.none();
  for (const char* unset : {"__package__", "__loader__", "__spec__"})
    module->names[unset] = in.none();
  return in.none();
}

Ref exec_module(I& in, Ref, const A& a) {
  Module* module = as<Module>(a.get(a.positional.size() > 1 ? 1 : 0), Type::kModule);
  if (!module || module->spec.kind != ModuleKind::kSource || module->state != Module::kFresh)
    return in.none();
  return in.run_module(module) ? in.none() : nullptr;
}

// importlib.machinery.SourceFileLoader(name, path) and its like.
Ref loader_new(I& in, Ref, const A& a) {
  Ref name = a.get(0, "fullname"), path = a.get(1, "path");
  return loader_of(in, name ? name : in.opaque(), path ? path : in.opaque());
}

Ref load_module(I& in, Ref self, const A&) {
  const auto spec = file_spec(in, self, "path");
  return spec ? in.load_spec(*spec) : in.opaque();
}

// --- imp (up to Python 3.11): what SWIG writes at the top of its modules up to its release 3.0.10

constexpr int64_t kImpSource = 1, kImpExtension = 3, kImpPackage = 5, kImpBuiltin = 6;

// What imp.find_module gives: (file, pathname, (suffix, mode, type)).
Ref imp_found(I& in, Ref file, Ref path, std::string_view suffix, std::string_view mode,
              int64_t type) {
  auto* details = in.list({in.string(suffix), in.string(mode), in.integer(type)}, Type::kTuple);
  return in.list({file, path, details}, Type::kTuple);
}

Ref imp_find_module(I& in, Ref, const A& a) {
  const std::string_view* name = text_of(a.get(0, "name"));
  Ref path = a.get(1, "path");
  const bool everywhere = !path || path->type == Type::kNone;
  if (!name || (!everywhere && !sequence_of(path))) return in.opaque();
  const auto spec = in.finder().find(*name, everywhere ? in.finder().path() : texts_of(path));
  if (!spec || spec->kind == ModuleKind::kNamespace) {
    if (!everywhere && sequence_of(path)->open) return in.opaque();
    return in.raise("ImportError", fmt::format("No module named '{}'", *name));
  }
  if (spec->kind == ModuleKind::kBuiltin)
    return imp_found(in, in.none(), in.none(), "", "", kImpBuiltin);
  if (spec->is_package())
    return imp_found(in, in.none(), in.string(spec->search.front()), "", "", kImpPackage);
  Instance* file = in.instance_of("File");
  file->open = true;
  Ref where = in.string(spec->path);
  if (spec->kind != ModuleKind::kNative) return imp_found(in, file, where, ".py", "r", kImpSource);
  for (const std::string& suffix : in.finder().extension_suffixes())
    if (spec->path.ends_with(suffix))
      return imp_found(in, file, where, suffix, "rb", kImpExtension);
  return in.opaque();
}

// By the name of the file alone, as load_source, load_dynamic and load_package take it.
Ref imp_load(I& in, const std::string_view* name, const std::string_view* path) {
  if (!name || !path) return in.opaque();
  ModuleSpec spec{std::string(*name), ModuleKind::kSource, std::string(*path), {}};
  if (const auto status = in.tree().stat(spec.path); status && status->is_directory()) {
    spec.search = {spec.path};
    spec.path += "/__init__.py";
  }
  if (is_extension(in, spec.path)) spec.kind = ModuleKind::kNative;
  return in.load_spec(spec);
}

Ref imp_load_file(I& in, Ref, const A& a) {
  Ref path = a.get(1, "pathname");
  return imp_load(in, text_of(a.get(0, "name")), text_of(path ? path : a.get(1, "path")));
}

Ref imp_load_module(I& in, Ref, const A& a) {
  const std::string_view* name = text_of(a.get(0, "name"));
  Sequence* details = sequence_of(a.get(3, "details"));
  Int* type =
      details && details->items.size() == 3 ? as<Int>(details->items[2], Type::kInt) : nullptr;
  if (name && type && type->value == kImpBuiltin) return in.import_dotted(*name);
  return imp_load(in, name, text_of(a.get(2, "filename")));
}

// importlib.machinery.FileFinder(directory, (loader, suffixes), ...): torchvision asks it where its
// own libraries lie.
Ref file_finder_new(I& in, Ref, const A& a) {
  Instance* finder = in.instance_of("FileFinder");
  finder->names["path"] = a.get(0, "path") ? a.get(0, "path") : in.opaque();
  auto* suffixes = in.list({});
  for (size_t i = 1; i < a.positional.size(); i++) {
    Sequence* details = sequence_of(a.positional[i]);
    Sequence* some =
        details && details->items.size() > 1 ? sequence_of(details->items[1]) : nullptr;
    if (some) in.append(suffixes, some->items);
    suffixes->open |= !some || some->open;
  }
  suffixes->open |= a.open;
  finder->names["suffixes"] = suffixes;
  finder->open = true;
  return finder;
}

Ref file_finder_find_spec(I& in, Ref self, const A& a) {
  Instance* finder = as<Instance>(self, Type::kInstance);
  const std::string_view* name = text_of(a.get(0, "fullname"));
  const std::string_view* path = finder ? text_of(finder->names.get("path")) : nullptr;
  Sequence* suffixes = finder ? sequence_of(finder->names.get("suffixes")) : nullptr;
  if (!name || !path || !suffixes) return in.opaque();
  const std::string base = fmt::format("{}/{}", *path, name->substr(name->rfind('.') + 1));
  for (const char* package : {"/__init__", ""})
    for (const std::string& suffix : texts_of(suffixes)) {
      const std::string file = fmt::format("{}{}{}", base, package, suffix);
      const auto status = in.tree().stat(file);
      if (!status || !status->is_regular()) continue;
      ModuleSpec spec{std::string(*name), ModuleKind::kSource, file, {}};
      if (*package) spec.search = {base};
      return described(in, spec);
    }
  return suffixes->open ? in.opaque() : in.none();
}

// importlib.machinery.PathFinder.find_spec(name, path)
Ref path_finder_find_spec(I& in, Ref, const A& a) {
  const std::string_view* name = text_of(a.get(0, "fullname"));
  Ref path = a.get(1, "path");
  if (!name) return in.opaque();
  const bool everywhere = !path || path->type == Type::kNone;
  Sequence* search = everywhere ? nullptr : sequence_of(path);
  const auto texts = texts_of(search);
  if (!everywhere && (!search || search->open || texts.size() < search->items.size()))
    return in.opaque();
  const auto spec = in.finder().find(*name, everywhere ? in.finder().path() : texts);
  return spec ? described(in, *spec) : in.none();
}

// A field of what iter_modules gives, by its name; of another tuple none is known.
template <size_t field>
Ref module_info_field(I& in, Ref self, const A&) {
  const Sequence* row = as<Sequence>(self, Type::kTuple);
  const bool is_info = row && row->items.size() == 3 && row->items[0]->type == Type::kOpaque &&
                       row->items[1]->type == Type::kStr && row->items[2]->type == Type::kBool;
  return is_info ? row->items[field] : in.opaque();
}

// pkgutil.iter_modules(path, prefix): what it yields has name, ispkg and module_finder.
Ref iter_modules(I& in, Ref, const A& a) {
  std::vector<std::string> search;
  Ref path = a.get(0, "path");
  if (!path || path->type == Type::kNone) return in.opaque();
  const auto items = in.elements(path);
  if (!items) return in.opaque();
  for (Ref item : *items)
    if (const std::string_view* text = text_of(item)) search.emplace_back(*text);
  const std::string_view* prefix = text_of(a.get(1, "prefix"));
  auto* result = in.list({});
  for (const std::string& name : in.finder().names_in(search)) {
    const auto spec = in.finder().find(name, search);
    Ref full = in.string(fmt::format("{}{}", prefix ? *prefix : "", name));
    auto* row = in.list({in.opaque(), full, in.boolean(spec && spec->is_package())}, Type::kTuple);
    result->items.push_back(row);
  }
  return result;
}

// --- files of packages

// A package's directory, as a path; the module may be given by name. Null: it cannot be imported.
Ref resource_files(I& in, Ref, const A& a) {
  Ref anchor = a.get(0, "anchor") ? a.get(0, "anchor") : a.get(0, "package");
  if (const std::string_view* name = text_of(anchor); name && !(anchor = in.import_dotted(*name)))
    return nullptr;
  Module* module = as<Module>(anchor, Type::kModule);
  if (!module || (!module->spec.is_package() && module->spec.path.empty())) return in.opaque();
  if (module->spec.is_package()) return in.path(module->spec.search[0]);
  return in.path(std::string_view(module->spec.path).substr(0, module->spec.path.rfind('/')));
}

Ref below(I& in, Ref directory, Ref name, Type type) {
  const std::string_view *base = text_of(directory), *rest = text_of(name);
  if (!directory || !base || !rest) return directory ? in.opaque() : nullptr;
  const std::string path = fmt::format("{}{}{}", *base, rest->empty() ? "" : "/", *rest);
  return type == Type::kPath ? in.path(path) : in.string(path);
}

// The standard library's own asks the module's loader, which imports what reads (FileLoader and
// NamespaceLoader in Lib/importlib/_bootstrap_external.py, since 3.10).
Ref files_by_loader(I& in, Ref self, const A& a) {
  Ref files = resource_files(in, self, a);
  const auto& python = in.finder().interpreter();
  if (!files || files->type != Type::kPath || (python.major == 3 && python.minor < 10))
    return files;
  return in.import_dotted("importlib.readers") ? files : nullptr;
}

// importlib.resources.path(package, resource): what it gives is a path when it is entered.
Ref resource_path(I& in, Ref self, const A& a) {
  return below(in, resource_files(in, self, a), a.get(1, "resource"), Type::kPath);
}
Ref path_by_loader(I& in, Ref self, const A& a) {
  return below(in, files_by_loader(in, self, a), a.get(1, "resource"), Type::kPath);
}

// pkg_resources.resource_filename(package_or_requirement, resource_name): text.
Ref resource_filename(I& in, Ref self, const A& a) {
  return below(in, resource_files(in, self, a), a.get(1, "resource_name"), Type::kStr);
}

// pkgutil.extend_path(path, name): what other directories have of the package, too.
Ref extend_path(I& in, Ref, const A& a) {
  Sequence* given = sequence_of(a.get(0, "path"));
  const std::string_view* name = text_of(a.get(1, "name"));
  if (!given || given->type != Type::kList || !name)
    return a.get(0, "path") ? a.get(0, "path") : in.opaque();
  Sequence* result = in.list({});
  result->items.assign(given->items.begin(), given->items.end());
  result->open = given->open;
  const size_t dot = name->rfind('.');
  const Sequence* places = in.sys_path();
  if (dot != name->npos) {
    Module* parent = as<Module>(I::dict_get(in.sys_modules(), name->substr(0, dot)), Type::kModule);
    places = parent ? sequence_of(parent->names.get("__path__")) : nullptr;
  }
  if (!places) return result;
  for (Ref place : places->items) {
    const auto directory = text_of(place) ? in.absolute(*text_of(place)) : std::nullopt;
    const auto spec = directory ? in.finder().find(*name, {*directory}) : std::nullopt;
    for (const std::string& portion : spec ? spec->search : std::vector<std::string>())
      if (std::none_of(result->items.begin(), result->items.end(),
                       [&](Ref known) { return text_of(known) && *text_of(known) == portion; }))
        result->items.push_back(in.string(portion));
  }
  return result;
}

// pkg_resources.declare_namespace(name): the same, of the module that asks.
Ref declare_namespace(I& in, Ref, const A& a) {
  const std::string_view* name = text_of(a.get(0, "packageName"));
  Module* module = name ? as<Module>(I::dict_get(in.sys_modules(), *name), Type::kModule) : nullptr;
  Ref path = module ? module->names.get("__path__") : nullptr;
  if (path) module->names["__path__"] = extend_path(in, nullptr, A(in.arena(), {path, a.get(0)}));
  return in.none();
}

Ref as_file(I& in, Ref, const A& a) {
  Ref path = a.get(0, "path");
  return path && path->type == Type::kPath ? path : in.opaque();
}

// --- native functions that open libraries

Ref dlopen(I& in, Ref self, const A& a) {
  Ref value = a.get(0);
  std::optional<std::string> name;
  if (!value) return in.opaque();
  if (const std::string_view* text = text_of(value)) {
    name = std::string(*text);
  } else if (value->type != Type::kNone) {
    in.undecided("the name of a library that is opened");
    return in.opaque();
  }
  Int* mode = as<Int>(a.get(1), Type::kInt);
  const int flags = (mode ? static_cast<int>(mode->value) : 0) | I::kRtldNow;
  const auto* callee = static_cast<Opaque*>(self);
  std::string caller;
  if (self && self->type == Type::kOpaque) caller = in.library_of(callee->name);
  return in.open_library(name, flags, caller);
}

Ref ctypes_dlopen(I& in, Ref, const A& a) {
  auto callee = in.make<Opaque>("_ctypes");
  const size_t opens = in.open_count();
  Ref result = dlopen(in, callee, a);
  return result && in.open_count() > opens ? in.last_library() : result;
}

// _ctypes.CFuncPtr((name, library)): an AttributeError where dlsym finds nothing.
Ref function_pointer(I& in, Ref self, const A& a) {
  const Sequence* told = as<Sequence>(a.get(0), Type::kTuple);
  const bool is_pair = told && told->items.size() == 2 && !told->open;
  const std::string_view* name = is_pair ? text_of(told->items[0]) : nullptr;
  const auto* library = is_pair ? as<Instance>(told->items[1], Type::kInstance) : nullptr;
  const auto* handle = library ? as<Opaque>(library->names.get("_handle"), Type::kOpaque) : nullptr;
  const auto there = name && handle ? in.has_symbol(handle->name, *name) : std::nullopt;
  if (auto* pointer = as<Instance>(self, Type::kInstance); pointer && there)
    pointer->is_true = true;
  if (there != false) return in.none();
  const std::string_view* path = text_of(library->names.get("_name"));
  return in.raise_certain("AttributeError",
                          fmt::format("{}: undefined symbol: {}", path ? *path : "python", *name));
}

Ref cffi_load(I& in, Ref, const A& a) {
  auto callee = in.make<Opaque>("_cffi_backend");
  return dlopen(in, callee, a);
}

// The object of a module that cffi has generated (ABI mode): it opens what it is told.
Ref cffi_new(I& in, Ref, const A&) {
  return in.opaque("_cffi_backend.FFI()");
}

// Whether a compiler or linker that ctypes.util would ask could find lib<name>.so or lib<name>.a in
// the system's directories, which are those of GNU ld's scripts and gcc's own, or in those that
// variables give them. Of one that stands elsewhere that is not asked: it could.
bool may_link(I& in, std::string_view name) {
  for (const char* asked : {"PATH", "LIBRARY_PATH", "LD_LIBRARY_PATH"})
    in.observe(in.environment(), in.constant(asked));
  const std::string_view* places = text_of(I::dict_get(in.environment(), "PATH"));
  if (!places) return true;
  bool is_there = false;
  for (const std::string_view place : split(*places, ':'))
    for (const char* program : {"gcc", "cc", "ld"}) {
      if (!in.tree().stat(fmt::format("{}/{}", place, program))) continue;
      if (place != "/usr/bin" && place != "/bin") return true;
      is_there = true;
    }
  if (!is_there) return false;
  for (const char* variable : {"COMPILER_PATH", "GCC_EXEC_PREFIX"})
    if (I::dict_get(in.environment(), variable)) return true;
  std::vector<std::string> directories;
  for (const char* variable : {"LIBRARY_PATH", "LD_LIBRARY_PATH"}) {
    Ref given = I::dict_get(in.environment(), variable);
    const std::string_view* places_too = text_of(given);
    if (given && !places_too) return true;
    for (const std::string_view place : split(places_too ? *places_too : "", ':'))
      if (!place.empty()) directories.emplace_back(place);
  }
  for (const char* prefix : {"/lib", "/usr/lib", "/usr/local/lib"}) {
    for (const char* suffix : {"", "64", "/x86_64-linux-gnu", "/aarch64-linux-gnu"})
      directories.push_back(fmt::format("{}{}", prefix, suffix));
    const std::string compilers = fmt::format("{}/gcc", prefix);
    for (const std::string& target : in.tree().list(compilers))
      for (const std::string& version : in.tree().list(fmt::format("{}/{}", compilers, target)))
        directories.push_back(fmt::format("{}/{}/{}", compilers, target, version));
  }
  return std::any_of(directories.begin(), directories.end(), [&](const std::string& directory) {
    return in.tree().stat(fmt::format("{}/lib{}.so", directory, name)) ||
           in.tree().stat(fmt::format("{}/lib{}.a", directory, name));
  });
}

// ctypes.util.find_library(name): of what `ldconfig -p` prints the first that fits, else what a
// compiler or linker finds, if there is one. Lib/ctypes/util.py, _findSoname_ldconfig and
// _findLib_gcc; the programs that it asks are not run.
Ref find_library(I& in, Ref, const A& a) {
  constexpr uint64_t kMostCache = 16 << 20;
  constexpr int32_t kKindOfLibrary = 0xff, kLibc6 = 3;
  constexpr int32_t kMachineOfLibrary = 0xff00, kX86_64 = 0x300;
  const std::string_view* name = text_of(a.get(0, "name"));
  if (!name || name->find_first_of(" \t\n/") != std::string_view::npos) return in.opaque();
  if (in.tree().stat("/sbin/ldconfig")) {
    const auto file = in.tree().read_text("/etc/ld.so.cache", kMostCache);
    if (!file) return in.opaque();
    const std::string start = fmt::format("lib{}.", *name);
    const LdCache cache = LdCache::parse(Bytes(*file));
    for (const LdCache::Entry& entry : cache.entries()) {
      const bool fits = (entry.flags & kKindOfLibrary) == kLibc6 &&
                        (in.finder().interpreter().elf_machine != elf::EM_X86_64 ||
                         (entry.flags & kMachineOfLibrary) == kX86_64);
      if (fits && entry.name.starts_with(start) && entry.name.size() > start.size())
        return in.string(entry.name);
    }
  }
  return may_link(in, *name) ? in.opaque() : in.none();
}

// _codecs_jp.getcodec(name): a LookupError for what this codec module does not have.
Ref getcodec(I& in, Ref self, const A& a) {
  const std::string_view* name = text_of(a.get(0));
  Opaque* callee = as<Opaque>(self, Type::kOpaque);
  if (!name || !callee) return in.opaque();
  FileStrings* strings = in.strings_in(in.library_of(callee->name));
  if (strings && !strings->has(*name))
    return in.raise("LookupError", "no such codec is supported.");
  // Modules/cjkcodecs/cjkcodecs.h makes the codec by that module.
  return in.import_dotted("_multibytecodec") ? in.opaque() : nullptr;
}

// TF_LoadLibrary of TensorFlow's C API opens through its own framework library.
Ref open_from_native(I& in, Ref self, const A& a) {
  return dlopen(in, self, a);
}

// What the constructors of google.protobuf.descriptor call first. protobuf's C runtime since 4.21
// refuses them all, and so generated code that is older than protoc 3.19.
Ref refuse_descriptor(I& in, Ref, const A&) {
  return in.raise_declared("TypeError", "Descriptors cannot be created directly.");
}

constexpr ModelRow kRows[] = {
    {"importlib.import_module", import_module},
    {"importlib.reload", reload},
    {"importlib.util.find_spec", find_spec},
    {"importlib.util.spec_from_file_location", spec_from_file},
    {"importlib.util.spec_from_loader", spec_from_loader},
    {"importlib.util.module_from_spec", module_from_spec},
    {"_frozen_importlib.spec_from_loader", spec_from_loader},
    {"_frozen_importlib_external.spec_from_file_location", spec_from_file},
    {"_frozen_importlib.module_from_spec", module_from_spec},
    {"_frozen_importlib.ModuleSpec", spec_from_loader},
    {"_frozen_importlib_external.SourceFileLoader", loader_new},
    {"_frozen_importlib_external.ExtensionFileLoader", loader_new},
    {"_frozen_importlib_external.FileFinder", file_finder_new},
    {"_frozen_importlib_external.PathFinder.find_spec", path_finder_find_spec},
    {"PathFinder.find_spec", path_finder_find_spec},
    {"FileFinder.find_spec", file_finder_find_spec},
    {"ModuleType.__init__", module_init},
    {"Loader.exec_module", exec_module},
    {"Loader.load_module", load_module},
    {"importlib._common.files", files_by_loader},
    {"importlib.resources.files", files_by_loader},
    {"importlib.resources._common.files", files_by_loader},
    {"importlib_resources.files", resource_files},
    {"importlib_resources._common.files", resource_files},
    {"importlib._common.as_file", as_file},
    {"importlib.resources.as_file", as_file},
    {"importlib.resources._common.as_file", as_file},
    {"importlib_resources.as_file", as_file},
    {"importlib_resources._common.as_file", as_file},
    {"importlib.resources.path", path_by_loader},
    {"importlib.resources._legacy.path", path_by_loader},
    {"importlib.resources._functional.path", path_by_loader},
    {"importlib_resources.path", resource_path},
    {"importlib_resources._functional.path", resource_path},
    {"pkg_resources.resource_filename", resource_filename},
    {"pkg_resources.declare_namespace", declare_namespace},
    {"pkgutil.extend_path", extend_path},
    {"imp.find_module", imp_find_module},
    {"imp.load_module", imp_load_module},
    {"imp.load_source", imp_load_file},
    {"imp.load_dynamic", imp_load_file},
    {"imp.load_package", imp_load_file},
    {"pkgutil.iter_modules", iter_modules},
    {"tuple.name()", module_info_field<1>},
    {"tuple.ispkg()", module_info_field<2>},
    {"_ctypes.dlopen", ctypes_dlopen},
    {"CFuncPtr.__init__", function_pointer},
    {"_cffi_backend.load_library", cffi_load},
    {"_cffi_backend.FFI", cffi_new},
    {"_cffi_backend.FFI().dlopen", cffi_load},
    {"ctypes.util.find_library", find_library},
    {"_codecs_cn.getcodec", getcodec},
    {"_codecs_hk.getcodec", getcodec},
    {"_codecs_iso2022.getcodec", getcodec},
    {"_codecs_jp.getcodec", getcodec},
    {"_codecs_kr.getcodec", getcodec},
    {"_codecs_tw.getcodec", getcodec},
    {"google._upb._message.Message._CheckCalledFromGeneratedFile", refuse_descriptor},
    {"tensorflow.python.client._pywrap_tf_session.TF_LoadLibrary", open_from_native},
    {"tensorflow.python.client.pywrap_tf_session.TF_LoadLibrary", open_from_native},
    {"tensorflow.python.pywrap_tensorflow.TF_LoadLibrary", open_from_native},
};

}  // namespace

std::optional<ModuleSpec> file_spec(I& in, Ref value, std::string_view where) {
  Instance* spec = as<Instance>(value, Type::kInstance);
  if (!spec) return std::nullopt;
  const std::string_view* name = text_of(spec->names.get("name"));
  const std::string_view* path = text_of(spec->names.get(where));
  if (!name || !path) return std::nullopt;
  ModuleSpec result{std::string(*name), ModuleKind::kSource, std::string(*path), {}};
  if (is_extension(in, *path)) result.kind = ModuleKind::kNative;
  result.search = texts_of(spec->names.get("submodule_search_locations"));
  return result;
}

// Of a ModuleSpec without a file. The *-nspkg.pth files of setuptools make such modules at
// start-up, and what is below them is imported through these: google.protobuf, say.
std::optional<ModuleSpec> namespace_spec(Ref value) {
  Instance* spec = as<Instance>(value, Type::kInstance);
  if (!spec) return std::nullopt;
  const std::string_view* name = text_of(spec->names.get("name"));
  Ref origin = spec->names.get("origin");
  Sequence* search = sequence_of(spec->names.get("submodule_search_locations"));
  if (!name || !search || search->open || !origin || origin->type != Type::kNone)
    return std::nullopt;
  return ModuleSpec{std::string(*name), ModuleKind::kNamespace, "", texts_of(search)};
}

std::span<const ModelRow> import_models() {
  return kRows;
}

}  // namespace cohabit::python
