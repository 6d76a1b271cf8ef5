// Importing: importlib/_bootstrap.py, followed step by step.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <tuple>
#include <utility>

#include "base/not_in_bundle.h"
#include "base/paths.h"
#include "base/secrets.h"
#include "base/source_secrets.h"
#include "imports/brings.h"
#include "imports/imported_names.h"
#include "imports/interpreter.h"
#include "imports/models.h"
#include "imports/module_name.h"

namespace cohabit::python {
namespace {

constexpr std::string_view kByFinder = "whether a finder of sys.meta_path finds";
std::string parent_of(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string() : std::string(name.substr(0, dot));
}

constexpr uint64_t kMostSource = 64 << 20;

// The list that counts now: programs replace sys.path.
Sequence* path_now(Ref sys, Sequence* at_first) {
  Module* module = as<Module>(sys, Type::kModule);
  Sequence* path = module ? sequence_of(module->names.get("path")) : nullptr;
  return path ? path : at_first;
}

// Whether the standard library has a module of this name, wherever it would be found.
bool has_standard(Finder& finder, std::string_view name) {
  const std::string& library = finder.standard_library();
  return finder.find(top_of(name), {library, library + "/lib-dynload"}).has_value();
}

}  // namespace

Ref Interpreter::loaded_module(std::string_view name) {
  return dict_get(sys_modules_, name);
}

std::optional<std::string> Interpreter::absolute_name(Module* from, uint32_t level,
                                                      std::string_view name) {
  // A program may have set it (PEP 366).
  const std::string_view* told = from ? text_of(from->names.get("__package__")) : nullptr;
  const std::string_view package = from ? std::string_view(from->package) : "";
  return absolute_import(told ? *told : package, level, name);
}

// Where modules below this one are looked for. What stands in sys.modules in place of a package may
// not tell; then where those of the package are.
std::vector<std::string> Interpreter::search_of(Ref parent, std::string_view name) {
  Module* module = as<Module>(parent, Type::kModule);
  Instance* replaced = as<Instance>(parent, Type::kInstance);
  if (!module && !replaced) return {};
  bool raised = false;
  Sequence* search = sequence_of(module ? module->names.get("__path__")
                                        : find_attribute(replaced, "__path__", &raised));
  if (raised) clear_raised();
  std::vector<std::string> result;
  if (search) {
    for (Ref item : search->items)
      if (const std::string_view* text = text_of(item)) result.emplace_back(*text);
  } else if (module) {
    result = module->spec.search;
  } else if (auto package = finder_.find_dotted(name)) {
    result = std::move(package->search);
  }
  return result;
}

void Interpreter::note_wanted(std::string_view name) {
  const Module* importer = current_module();
  if (!started_ || !importer || is_standard(importer)) return;
  const std::string_view top = name.substr(0, name.find('.'));
  if (top == std::string_view(importer->spec.name).substr(0, importer->spec.name.find('.'))) return;
  if (wanted_.insert(fmt::format("{} {}", importer->spec.name, top)).second)
    plan_.wanted.emplace_back(importer->spec.name, top);
}

Ref Interpreter::import_dotted(std::string_view name) {
  effects_++;
  note_wanted(name);
  if (Ref known = loaded_module(name)) {
    if (known->type != Type::kNone) return known;
    return raise("ModuleNotFoundError",
                 fmt::format("import of {} halted; None in sys.modules", name));
  }
  Ref module = nullptr;
  for (size_t end = 0; end != std::string_view::npos;) {
    end = name.find('.', end == 0 ? 0 : end + 1);
    Ref parent = module;
    module = import_one(name.substr(0, end), parent);
    if (!module) return nullptr;
  }
  return module;
}

namespace {

// `place`: where an entry leads.
template <class Place>
std::vector<std::string> search_path(const Sequence& path, const Place& place) {
  std::vector<std::string> search;
  for (Ref item : path.items)
    if (const std::string_view* text = text_of(item))
      if (std::optional<std::string> entry = place(*text)) search.push_back(std::move(*entry));
  return search;
}

// Of a module that was not found there. A bundle may lack it: of its directories, not all names are
// known. Of the user's home it keeps only names that were asked for, hence asking for it on a
// machine, too.
bool is_certainly_missing(const Tree& tree, std::string_view name,
                          const std::vector<std::string>& search) {
  if (!tree.has_log()) return true;
  const auto is_known = [&](const std::string& path) {
    const auto status = tree.stat(path);
    return status || status.error() != kNotInBundle;
  };
  return std::all_of(search.begin(), search.end(), [&](const std::string& entry) {
    const std::string path =
        fmt::format("{}/{}", entry.empty() ? tree.current_directory() : entry, last_of(name));
    const bool knows_package = is_known(path), knows_file = is_known(path + ".py");
    return knows_package && knows_file;
  });
}

}  // namespace

std::optional<ModuleSpec> Interpreter::find_spec(std::string_view name) {
  const std::string parent = parent_of(name);
  const auto place = [this](std::string_view entry) {
    return has_moved ? absolute(entry) : std::string(entry);
  };
  if (parent.empty()) {
    if (finder_.is_builtin(name) || name == "_frozen_importlib" ||
        name == "_frozen_importlib_external")
      return ModuleSpec{std::string(name), ModuleKind::kBuiltin, "", {}};
    return finder_.find(name, search_path(*path_now(loaded_module("sys"), sys_path_), place));
  }
  Ref package = import_dotted(parent);
  if (!package) return std::nullopt;
  return finder_.find(name, search_of(package, parent));
}

Ref Interpreter::import_one(std::string_view name, Ref parent) {
  if (Ref known = loaded_module(name)) {
    if (known->type != Type::kNone) return known;
    return raise("ModuleNotFoundError",
                 fmt::format("import of {} halted; None in sys.modules", name));
  }
  Module* package = as<Module>(parent, Type::kModule);
  if (parent && !package) return import_below_replaced(name, parent);
  if (Ref custom = ask_custom_finders(name, parent, true)) {
    if (package) package->names[keep(last_of(name))] = custom;
    return custom;
  }
  if (raised_) return nullptr;
  std::optional<ModuleSpec> spec;
  if (!parent) {
    spec = find_spec(name);
  } else {
    spec = finder_.find(name, search_of(parent, parent_of(name)));
  }
  if (spec) {
    Ref module = load_spec(*spec);
    if (module && package) package->names[keep(last_of(name))] = module;
    return module;
  }
  Ref hooked = ask_path_hooks(name, parent);
  if (raised_) return nullptr;
  if (Ref custom = hooked ? hooked : ask_custom_finders(name, parent, false)) {
    if (package) package->names[keep(last_of(name))] = custom;
    return custom;
  }
  if (raised_) return nullptr;
  if (package && package->may_have_more() && !package->spec.is_package()) {
    // Native code makes submodules of its own (torch._C._autograd).
    Ref value = opaque(name);
    dict_set(sys_modules_, name, value);
    return value;
  }
  if (const auto whether = parent ? std::string_view() : may_be_elsewhere(name);
      !whether.empty() && !expects("ImportError"))
    return found_or_not(name, whether);
  const auto place = [this](std::string_view entry) {
    return has_moved ? absolute(entry) : std::string(entry);
  };
  const auto search = parent ? search_of(parent, parent_of(name))
                             : search_path(*path_now(loaded_module("sys"), sys_path_), place);
  if (!is_certainly_missing(tree(), name, search) || may_be_made_by_its_package(name)) {
    Ref value = opaque(name);
    dict_set(sys_modules_, name, value);
    return value;
  }
  if (may_be_registered(name) && !expects("ImportError"))
    return found_or_not(name, "whether sys.modules has been given");
  note_sought(PlanEvent::kMissing, name);
  raise("ModuleNotFoundError", fmt::format("No module named '{}'", name));
  if (auto* error = as<Instance>(raised_->value, Type::kInstance))
    error->names["name"] = string(name);
  return nullptr;
}

// Of an unknown name: libraries make modules of their own so (pyomo.common.dependencies), programs
// any.
void Interpreter::note_registered(Ref key) {
  const std::string_view* name = key ? text_of(key) : nullptr;
  if (name)
    registered_.emplace(*name);
  else if (!current_module() || is_own_code(current_module()))
    registered_.emplace("");
  else
    registered_.insert(fmt::format("{}.", top_of(current_module()->spec.name)));
}

bool Interpreter::may_be_registered(std::string_view name) const {
  return !registered_.empty() &&
         (registered_.contains("") || registered_.contains(std::string(name)));
}

bool Interpreter::may_be_made_by_its_package(std::string_view name) const {
  return !registered_.empty() && registered_.contains(fmt::format("{}.", top_of(name))) &&
         !expects("ImportError");
}

// A package that code put into sys.modules: what is in its __path__ is found there, or in that of
// the package which it replaced; other submodules are its own affair.
Ref Interpreter::import_below_replaced(std::string_view name, Ref parent) {
  if (Instance* package = as<Instance>(parent, Type::kInstance)) {
    if (Ref custom = ask_custom_finders(name, parent, true)) return custom;
    if (raised_) return nullptr;
    if (const auto spec = finder_.find(name, search_of(package, parent_of(name)))) {
      Ref module = load_spec(*spec);
      if (module) package->names[keep(last_of(name))] = module;
      return module;
    }
    if (Ref custom = ask_custom_finders(name, parent, false)) return custom;
    if (raised_) return nullptr;
  }
  Ref value = opaque(name);
  dict_set(sys_modules_, name, value);
  return value;
}

// Finders that programs put on sys.meta_path: those that stand before the one of sys.path, or those
// behind it.
Ref Interpreter::ask_custom_finders(std::string_view name, Ref parent, bool before,
                                    bool* is_unsure) {
  const List& all = meta_path_->items;
  const auto place = std::find(all.begin(), all.end(), path_finder_);
  const bool is_gone = place == all.end();  // then none stands before it
  const auto first = before || is_gone ? all.begin() : place + 1;
  const auto last = before ? (is_gone ? first : place) : all.end();
  const std::vector<Ref> finders(first, last);  // they may change the list
  if (finders.empty()) return nullptr;
  bool may_find = false;
  // A package finds its own modules (mpi4py.MPI).
  const auto is_own_affair = [](const Class* finder, std::string_view wanted) {
    return finder->module && top_of(finder->module->spec.name) == top_of(wanted);
  };
  Sequence* search = parent ? list({}) : nullptr;
  if (search)
    for (const std::string& directory : search_of(parent, parent_of(name)))
      search->items.push_back(string(directory));
  for (Ref item : finders) {
    Instance* instance = as<Instance>(item, Type::kInstance);
    Class* type = instance ? instance->of : as<Class>(item, Type::kClass);
    Ref method = type ? class_attribute(type, "find_spec") : nullptr;
    // Python before 3.12 asks so who has no other way (six).
    const bool gives_loader = type && !method && finder_.interpreter().minor < 12;
    if (gives_loader) method = class_attribute(type, "find_module");
    if (!method) continue;
    // What it imports may import the name once more (setuptools' distutils). A finder that never
    // ends so has means of its own against it, which may be unknown here.
    constexpr std::ptrdiff_t kMostAtOnce = 2;
    const std::pair<Ref, std::string_view> question(item, name);
    if (std::count(asked_finders_.begin(), asked_finders_.end(), question) >= kMostAtOnce) continue;
    asked_finders_.push_back(question);
    const uint64_t guesses = guesses_;
    Arguments arguments(arena_, {string(name), search ? search : none_});
    if (!gives_loader) arguments.positional.push_back(none_);
    returned_in_doubt_ = false;
    Ref spec = call(bind_method(method, instance, type), arguments);
    // It may have returned before, without one.
    if (spec && spec->type == Type::kInstance && returned_in_doubt_) spec = opaque_;
    if (spec && spec->type == Type::kInstance && gives_loader) {
      Instance* described = instance_of("ModuleSpec");
      described->names["loader"] = spec;
      spec = described;
    }
    asked_finders_.pop_back();
    if (!spec) {
      clear_raised();
      continue;
    }
    if (Instance* known = as<Instance>(spec, Type::kInstance)) return load_by_custom(name, known);
    may_find |= spec->type == Type::kOpaque || (guesses_ != guesses && is_own_affair(type, name));
  }
  // Whoever expects that it is not there goes on without it.
  if (before || !may_find || expects("ImportError")) return nullptr;
  if (is_unsure) {
    *is_unsure = true;
    return nullptr;
  }
  return found_or_not(name, kByFinder);
}

// Hooks that programs put on sys.path_hooks, for entries that are no files: setuptools finds the
// namespaces of projects that are installed in place so. Python's own come first and take files.
Ref Interpreter::ask_path_hooks(std::string_view name, Ref parent) {
  Module* sys = as<Module>(loaded_module("sys"), Type::kModule);
  const Sequence* hooks = sys ? sequence_of(sys->names.get("path_hooks")) : nullptr;
  if (!hooks || hooks->items.empty()) return nullptr;
  Module* package = as<Module>(parent, Type::kModule);
  const Sequence* places = parent ? sequence_of(package ? package->names.get("__path__") : nullptr)
                                  : path_now(sys, sys_path_);
  if (!places) return nullptr;
  const List entries = places->items, asked = hooks->items;  // they may change the lists
  for (Ref entry : entries) {
    const std::string_view* text = text_of(entry);
    const auto place = text ? absolute(*text) : std::nullopt;
    if (!place || tree().stat(*place)) continue;
    for (Ref hook : asked) {
      Ref finder = call(hook, Arguments(arena_, {entry}));
      Instance* instance = as<Instance>(finder, Type::kInstance);
      Class* type = instance ? instance->of : as<Class>(finder, Type::kClass);
      Ref method = type ? class_attribute(type, "find_spec") : nullptr;
      Ref spec = method ? call(bind_method(method, instance, type),
                               Arguments(arena_, {string(name), none_}))
                        : nullptr;
      clear_raised();  // it is for other entries
      if (const auto found = namespace_spec(spec)) return load_spec(*found);
      if (Instance* known = as<Instance>(spec, Type::kInstance)) return load_by_custom(name, known);
    }
  }
  return nullptr;
}

std::string_view Interpreter::may_be_elsewhere(std::string_view name) {
  const Sequence* path = path_now(loaded_module("sys"), sys_path_);
  const bool is_unknown =
      path->open || std::any_of(path->items.begin(), path->items.end(), [&](Ref item) {
        const std::string_view* text = text_of(item);
        return item->type == Type::kOpaque || (text && has_moved && !absolute(*text));
      });
  if (is_unknown) return "whether a directory of sys.path that is not known has";
  if (written_.contains(std::string(name))) return "whether a file that was written is";
  if (may_install) return "whether a process that was started has installed";
  const bool may_be_here =
      !made_paths_.empty() && std::any_of(path->items.begin(), path->items.end(), [&](Ref item) {
        const std::string_view* text = text_of(item);
        const auto below = text ? absolute(fmt::format("{}/{}", *text, name)) : std::nullopt;
        return below && (may_be_made(*below) || may_be_made(*below + ".py"));
      });
  if (may_be_here) return "whether what the program makes is";
  // `except ImportError:` that installs it and imports it again.
  const auto [missed, is_new] = missed_.try_emplace(std::string(name), processes_started);
  return is_new || missed->second == processes_started
             ? ""
             : "whether a process that was started has installed";
}

void Interpreter::note_written(std::string_view path) {
  note_made(path);
  constexpr std::string_view kEnd = ".py";
  path.remove_prefix(path.rfind('/') + 1);  // npos + 1: no slash
  if (path.ends_with(kEnd)) written_.emplace(path.substr(0, path.size() - kEnd.size()));
}

void Interpreter::note_made(std::string_view path) {
  if (const auto place = absolute(path)) made_paths_.insert(join_normal("/", *place));
}

// It was made itself, or a directory above it, or something below it.
bool Interpreter::may_be_made(std::string_view path) const {
  if (made_paths_.empty()) return false;
  const auto place = absolute(path);
  if (!place) return false;
  const std::string whole = join_normal("/", *place);
  for (size_t end = whole.size(); end > 0 && end != whole.npos; end = whole.rfind('/', end - 1))
    if (made_paths_.contains(whole.substr(0, end))) return true;
  const auto below = made_paths_.lower_bound(whole + "/");
  return below != made_paths_.end() && below->starts_with(whole + "/");
}

Ref Interpreter::found_or_not(std::string_view name, std::string_view whether) {
  undecided(fmt::format("{} {}", whether, name)).may_fail = true;
  Ref value = opaque(name);
  dict_set(sys_modules_, name, value);
  return value;
}

// A loader of the program's own may do more when the module is there (vtkmodules imports what goes
// with it).
Ref Interpreter::execute_by_custom(Ref module, Instance* spec) {
  Instance* loader = as<Instance>(spec->names.get("loader"), Type::kInstance);
  Ref method = loader ? class_attribute(loader->of, "exec_module") : nullptr;
  if (!as<Function>(method, Type::kFunction)) return module;
  return call(bind_method(method, loader, loader->of), Arguments(arena_, {module})) ? module
                                                                                    : nullptr;
}

Ref Interpreter::load_by_custom(std::string_view name, Ref value) {
  auto* spec = static_cast<Instance*>(value);
  // A file of Python's own kinds, whoever loads it.
  if (auto file = file_spec(*this, spec);
      file && (file->kind == ModuleKind::kNative || file->path.ends_with(".py"))) {
    const auto status = tree().stat(file->path);
    file->name = name;
    if (status && S_ISREG(status->mode)) {
      Ref module = load_spec(*file);
      return module && file->kind == ModuleKind::kNative ? execute_by_custom(module, spec) : module;
    }
  }
  Ref made = nullptr;
  if (Instance* object = as<Instance>(spec->names.get("loader"), Type::kInstance)) {
    for (const char* step : {"create_module", "load_module"}) {
      Ref method = class_attribute(object->of, step);
      if (!method || (made && made->type != Type::kNone)) continue;
      made = call(bind_method(method, object, object->of),
                  Arguments(arena_, {step[0] == 'c' ? value : string(name)}));
      if (!made) clear_raised();
    }
  }
  if (!made || made->type == Type::kNone || made->type == Type::kOpaque) {
    Module* module = new_module({std::string(name), ModuleKind::kBuiltin, "", {}});
    module->open = true;
    module->state = Module::kDone;
    made = module;
  }
  dict_set(sys_modules_, name, made);
  return made;
}

Ref Interpreter::installed_version(const Module& module) {
  if (module.spec.name.find('.') != std::string::npos || !module.spec.is_package()) return nullptr;
  const std::string directory = directory_of(module.spec.path);
  const Distribution* owner = nullptr;
  for (const Distribution& one : distributions_.all()) {
    if (!one.has_native_files_below(directory)) continue;
    if (owner) return nullptr;
    owner = &one;
  }
  return owner ? constant(owner->version) : nullptr;
}

Module* Interpreter::make_module(const ModuleSpec& spec) {
  auto* module = make<Module>(specs_.emplace_back(spec));
  module->package = module->spec.package();
  return module;
}

Module* Interpreter::new_module(const ModuleSpec& found) {
  Module* module = make_module(found);
  const ModuleSpec& spec = module->spec;
  module->names["__name__"] = constant(spec.name);
  module->names["__package__"] = constant(module->package);
  module->names["__doc__"] = opaque_;
  module->names["__loader__"] = opaque_;
  module->names["__builtins__"] = opaque_;
  Instance* described = instance_of("ModuleSpec");
  described->names["name"] = constant(spec.name);
  described->names["origin"] = spec.path.empty() ? none_ : constant(spec.path);
  described->names["loader"] = opaque_;
  described->names["has_location"] = boolean(!spec.path.empty());
  described->names["parent"] = constant(module->package);
  if (!spec.path.empty()) module->names["__file__"] = constant(spec.path);
  if (spec.is_package()) {
    auto* search = make<Sequence>(Type::kList);
    for (const std::string& directory : spec.search) search->items.push_back(constant(directory));
    module->names["__path__"] = search;
    described->names["submodule_search_locations"] = search;
  } else {
    described->names["submodule_search_locations"] = none_;
  }
  module->names["__spec__"] = described;
  return module;
}

// A user's file may have the name of a module of the standard library.
bool Interpreter::has_models(const Module& module) {
  const auto& spec = module.spec;
  if (spec.kind == ModuleKind::kBuiltin || is_standard(&module)) return true;
  return !has_standard(finder_, spec.name);
}

void Interpreter::install_models(Module* module) {
  if (!has_models(*module)) return;
  for (const ModelRow* row : models_of(module->spec.name))
    module->names[last_of(row->name)] = make<Model>(row->name, row->function);
  install_values(module);
}

Ref Interpreter::load_spec(const ModuleSpec& spec) {
  if (ended_) return nullptr;
  if (Ref known = loaded_module(spec.name); known && known->type == Type::kModule) return known;
  Module* module = new_module(spec);
  module->state = Module::kRunning;
  dict_set(sys_modules_, module->spec.name, module);
  PlannedModule planned{spec.name, spec.kind, spec.path, "", 0};
  if (!frames_.empty()) {
    if (current_module()) planned.importer = current_module()->spec.name;
    planned.line = frames_.back().line;
  }
  const size_t index = plan_.modules.size();
  plan_.modules.push_back(std::move(planned));
  note(PlanEvent::kEnter, index);
  Ref loaded = module;
  switch (spec.kind) {
    case ModuleKind::kSource:
      has_shadows_ |=
          spec.name.find('.') == std::string::npos && !is_installed(module) && !has_models(*module);
      loaded = load_source(module);
      break;
    case ModuleKind::kNative:
      loaded = load_native(module);
      break;
    case ModuleKind::kBytecode:
      plan_.problems.push_back("only bytecode of " + spec.name + " is there");
      module->open = true;
      break;
    case ModuleKind::kBuiltin:
      module->open = true;
      install_models(module);
      break;
    case ModuleKind::kNamespace:
      break;
  }
  note(PlanEvent::kLeave, index);
  if (!loaded) {
    module->state = Module::kFailed;
    sys_modules_->items.erase(constant(module->spec.name));
    return nullptr;
  }
  module->state = Module::kDone;
  if (module->open && (spec.kind == ModuleKind::kBuiltin || is_standard(module))) {
    module->open = false;  // until others give it names
    module->partly_seen = true;
  }
  Ref now = loaded_module(spec.name);  // the module may have replaced itself
  return now ? now : module;
}

const Syntax* Interpreter::parse(const std::string& path) {
  const auto known = cache_.sources.find(path);
  if (known != cache_.sources.end()) return known->second.get();
  auto source = finder_.read_source(path, kMostSource);
  if (!source) {
    const auto status = tree().stat(path);
    // What a bundle lacks it tells itself.
    if (!lacks_content(tree(), path))
      plan_.problems.push_back(
          status && status->size > kMostSource
              ? fmt::format("{} is not read: it is larger than {} MiB", path, kMostSource >> 20)
              : "cannot read " + path);
    return cache_.sources.emplace(path, nullptr).first->second.get();
  }
  if (source->is_packed && !import_dotted("zlib")) clear_raised();  // zipimport unpacks by it
  // As a bundle has it: what is done is the same there, and no text of it tells a secret.
  if (is_own_source(path, source->text)) redaction_.apply_to_file(path, source->text, false);
  auto syntax = std::make_unique<Syntax>(std::move(source->text), cache_.nodes);
  return cache_.sources.emplace(path, std::move(syntax)).first->second.get();
}

Ref Interpreter::load_source(Module* module) {
  module->syntax = parse(module->spec.path);
  if (!module->syntax) {
    module->open = true;
    return module;
  }
  // Of an installed file that somebody has run before, functions are taken to be right: parsing all
  // of them would take longer than all else. Magic commands make what is in cells no Python.
  if (!is_installed(module) && !is_standard(module) && !module->spec.path.ends_with(".ipynb"))
    module->syntax->parse_functions();
  if (const auto error = module->syntax->first_error(finder_.interpreter().minor))
    return refuse_source(*module, error->message, error->line);
  return run_file(module);
}

// A script, which is read line by line: nothing of it may be of another encoding.
Ref Interpreter::load_script(Module* module) {
  module->syntax = parse(module->spec.path);
  const StrayByte stray = module->syntax ? module->syntax->stray() : StrayByte();
  if (stray.line == 0 || stray.is_declared) return load_source(module);
  return refuse_source(
      *module,
      fmt::format("Non-UTF-8 code starting with '\\x{:02x}', but no encoding declared", stray.byte),
      stray.line);
}

// The file that cannot be read is named, not who imports it.
Ref Interpreter::refuse_source(const Module& module, std::string_view problem, uint32_t line) {
  raise("SyntaxError", fmt::format("{} ({}, line {})", problem, module.spec.path, line));
  raised_->file = module.spec.path;
  raised_->line = line;
  return nullptr;
}

Ref Interpreter::run_file(Module* module) {
  if (frames_.size() > 600) {
    plan_.problems.push_back("imports are nested too deeply at " + module->spec.name);
    module->open = true;
    return module;
  }
  auto* scope = make<Scope>();
  scope->names = &module->names;
  scope->module = module;
  // A module runs with a budget of its own, also when a function imports it.
  const uint64_t limit = step_limit_, before = steps_;
  step_limit_ = 0;
  has_own_code_ |= !module->spec.path.empty() && is_own_code(module);
  frames_.push_back({scope, 0, nullptr});
  module_depth_++;
  const Flow flow = execute(module->syntax->module());
  module_depth_--;
  leave_frame();
  step_limit_ = limit ? limit + (steps_ - before) : 0;
  install_models(module);
  return flow == Flow::kRaise ? nullptr : module;
}

// Of a text that is no file; it stays where it is.
const Syntax* Interpreter::parse_text(std::string_view code) {
  made_bytes_ += code.size();
  return made_.emplace_back(std::make_unique<Syntax>(std::string(code), arena_)).get();
}

Ref Interpreter::run_text(std::string_view code, Dict* names) {
  constexpr size_t kMostCode = 1 << 20;
  Module* current = current_module();
  if (code.size() > kMostCode || frames_.size() > 200) return opaque_;
  const Syntax* syntax = parse_text(code);
  if (!syntax->errors().empty())
    return expects("SyntaxError") ? raise("SyntaxError", "invalid syntax") : opaque_;
  Module* module = names ? new_module(current->spec) : current;
  if (names)
    for (const auto& [key, value] : names->items)
      if (const std::string_view* name = text_of(key)) module->names[*name] = value;
  const Syntax* before = module->syntax;
  module->syntax = syntax;
  Ref result = run_file(module);
  module->syntax = before;
  if (names)
    for (const auto& [name, value] : module->names)
      if (!name.starts_with("__")) dict_set(names, name, value);
  if (names && module->may_have_more()) names->open_all();
  return result;
}

Ref Interpreter::evaluate_text(std::string_view code) {
  constexpr size_t kMostCode = 1 << 16;
  if (code.size() > kMostCode) return opaque_;
  const Syntax* syntax = parse_text(code);
  const Block block = syntax->module();
  if (!syntax->errors().empty() || block.size() != 1 || block[0]->kind != StmtKind::kExpression)
    return opaque_;
  return evaluate(*block[0]->exprs[0]);
}

Ref Interpreter::run_module(Module* module) {
  module->state = Module::kRunning;
  const size_t index = plan_.modules.size();
  plan_.modules.push_back({module->spec.name, module->spec.kind, module->spec.path,
                           current_module() ? current_module()->spec.name : "",
                           frames_.empty() ? 0 : frames_.back().line});
  note(PlanEvent::kEnter, index);
  Ref loaded = load_source(module);
  note(PlanEvent::kLeave, index);
  module->state = loaded ? Module::kDone : Module::kFailed;
  return loaded;
}

Ref Interpreter::open_library(const std::optional<std::string>& name, int flags,
                              const std::string& caller) {
  effects_++;
  PlannedOpen planned;
  planned.name = name;
  planned.flags = flags;
  planned.caller = caller;
  planned.cause = OpenCause::kCall;
  if (Module* module = current_module()) planned.module = module->spec.name;
  if (const Frame* frame = frame_of_point(); frame && frame->scope->module) {
    planned.file = frame->scope->module->spec.path;
    planned.line = frame->line;
  }
  const auto error = loader_.open(name, flags, caller);
  if (error) planned.error = *error;
  note(PlanEvent::kOpen, plan_.opens.size());
  plan_.opens.push_back(std::move(planned));
  const bool is_unknown = error && error->find(kNotInBundleText) != std::string::npos;
  return error && !is_unknown ? raise("OSError", *error) : opaque();
}

namespace {

constexpr std::string_view kLibrary = "<library ";  // and its number among the opens

}  // namespace

Ref Interpreter::last_library() {
  return opaque(fmt::format("{}{}>", kLibrary, plan_.opens.size() - 1));
}

std::optional<bool> Interpreter::has_symbol(std::string_view library, std::string_view symbol) {
  if (!library.starts_with(kLibrary)) return std::nullopt;
  library.remove_prefix(kLibrary.size());
  size_t open = 0;
  const auto read = std::from_chars(library.data(), library.data() + library.size(), open);
  const bool is_whole = read.ec == std::errc() && library.substr(read.ptr - library.data()) == ">";
  if (!is_whole || open >= plan_.opens.size()) return std::nullopt;
  const auto there = loader_.has_symbol(open, symbol);
  auto& asked = plan_.opens[open].symbols;
  const bool is_new = std::none_of(asked.begin(), asked.end(),
                                   [&](const AskedSymbol& one) { return one.name == symbol; });
  if (there && is_new) asked.push_back({std::string(symbol), *there});
  return there;
}

const NativeStrings* Interpreter::strings_of(const ModuleSpec& spec) {
  const auto known = cache_.natives.find(spec.path);
  if (known != cache_.natives.end()) return &known->second;
  const auto& probe = images_.open(spec.path, finder_.interpreter().elf_machine);
  if (probe.image == kNone) return nullptr;
  const auto words = images_[probe.image].extract(
      "strings of a native module", [](const elf::Object& object, Bytes file) {
        return words_of(read_native_strings(object, file));
      });
  return &cache_.natives.emplace(spec.path, native_strings_of(words)).first->second;
}

namespace {

bool is_library_of_mypyc(std::string_view name) {
  return name.ends_with("__mypyc");
}

}  // namespace

std::optional<ModulesInside> Interpreter::modules_inside(const ModuleSpec& spec) {
  if (!is_library_of_mypyc(spec.name)) return std::nullopt;
  const auto& probe = images_.open(spec.path, finder_.interpreter().elf_machine);
  if (probe.image == kNone) return std::nullopt;
  return ModulesInside(images_[probe.image].elf);
}

// Without importing anything: below the package of the name that is imported already, in its
// __path__; else where the files are.
std::optional<ModuleSpec> Interpreter::find_from_loaded(std::string_view name) {
  for (size_t dot = name.rfind('.'); dot != name.npos && dot > 0; dot = name.rfind('.', dot - 1)) {
    const std::string_view parent = name.substr(0, dot);
    Module* package = as<Module>(loaded_module(parent), Type::kModule);
    if (!package) continue;
    std::vector<std::string> search = search_of(package, parent);
    std::optional<ModuleSpec> spec;
    for (size_t end = dot; end != name.npos && !search.empty();) {
      end = name.find('.', end + 1);
      spec = finder_.find(name.substr(0, end), search);
      search = spec ? spec->search : std::vector<std::string>();
    }
    if (spec && spec->name == name) return spec;
    break;
  }
  return finder_.find_dotted(name);
}

// Python code that names the extension module that names it is imported after it: the extension's
// name for it stands in some function, for later.
bool Interpreter::needs_back(const std::string& name, const Module& importer) {
  // protobuf's runtime imports these when a message of theirs is made; they want it finished.
  if (name.ends_with("_pb2") || name == "google.protobuf.internal.well_known_types") return true;
  const auto spec = find_from_loaded(name);
  if (!spec || spec->kind != ModuleKind::kSource || spec->is_package()) return false;
  const auto text = tree().read_text(spec->path, kMostSource);
  return text && text->find(importer.spec.name) != std::string::npos;
}

Brings& Interpreter::brings() {
  if (!cache_.brings)
    cache_.brings = std::make_shared<Brings>(distributions_, finder_.interpreter());
  return *cache_.brings;
}

// Many take NumPy's C interface where it is there, and do not require it.
bool Interpreter::may_need(const std::string& native, std::string_view wanted) {
  if (wanted.substr(0, wanted.find('.')) == "numpy") return true;
  return brings().may_need(native, wanted);
}

// A module of the standard library does not fail by itself: a user's file stands in the place of
// one that it needs. Native code may expect errors, but not that.
bool Interpreter::fails_for_shadows(std::string_view name) {
  return has_shadows_ && raised_ && !raised_->doubted && !expects("ImportError") &&
         has_standard(finder_, name);
}

// Nor that a module is not there which its distribution requires: that is raised then.
bool Interpreter::fails_for_missing(const NativeStrings& strings, const std::string& native) {
  std::string_view last;
  for (const std::string_view name : strings.code.stated) {
    const std::string_view top = name.substr(0, name.find('.'));
    if (top.empty() || top == last || loaded_module(top)) continue;  // empty: a relative one
    last = top;
    if (!brings().lacks_required(native, top) || import_dotted(std::string(top))) continue;
    if (raised_is("ModuleNotFoundError") && !raised_->doubted && !expects("ImportError"))
      return true;
    clear_raised();
  }
  return false;
}

// ---- mypyc: wheels have the sources beside what it has made of them, and these say what it does.
// A library, "...__mypyc", holds the code of several modules. Each has a file of its own that opens
// the library, but for those that others of it import: these it makes itself.

std::string Interpreter::source_beside(const ModuleSpec& spec) {
  if (spec.kind != ModuleKind::kNative || is_library_of_mypyc(spec.name)) return "";
  const NativeStrings* strings = strings_of(spec);
  if (!strings || std::none_of(strings->names.begin(), strings->names.end(), is_library_of_mypyc))
    return "";
  const size_t name = spec.path.rfind('/') + 1;
  const std::string path = spec.path.substr(0, spec.path.find('.', name)) + ".py";
  return tree().stat(path) ? path : "";
}

// The library of the code that imports it, if it is in there. Null: none.
Module* Interpreter::library_around(const ModuleSpec& wanted) {
  const Module* importer = current_module();
  if (!importer) return nullptr;
  for (const Module* native : importer->natives)
    if (const auto inside = modules_inside(native->spec); inside && inside->contains(wanted.name))
      return as<Module>(loaded_module(native->spec.name), Type::kModule);
  return nullptr;
}

// Parts of mypyc's own runtime, which it takes functions from by a capsule.
void Interpreter::import_for_library(const NativeStrings& strings) {
  for (const std::string& name : strings.names)
    if (name.ends_with("._C_API") && !import_dotted(parent_of(name))) clear_raised();
}

// Compiled code does what its source says.
Ref Interpreter::run_source_of(Module* native, const std::string& path) {
  native->syntax = parse(path);
  if (!native->syntax || native->syntax->first_error(finder_.interpreter().minor)) return native;
  Ref result = run_file(native);
  if (!result && raised_ && raised_->file == native->spec.path) raised_->file = path;
  return result;
}

Ref Interpreter::load_native(Module* module) {
  if (const Module* library = library_around(module->spec)) {
    module->add_natives(*library);
    const std::string source = source_beside(module->spec);
    return source.empty() ? module : run_source_of(module, source);
  }
  PlannedOpen planned;
  planned.name = module->spec.path;
  planned.flags = dlopen_flags;
  planned.cause = OpenCause::kExtension;
  planned.module = module->spec.name;
  if (Module* importer = current_module()) {
    planned.file = importer->spec.path;
    planned.line = frames_.back().line;
  }
  const auto error = loader_.open(planned.name, planned.flags, "");
  if (error) planned.error = *error;
  note(PlanEvent::kOpen, plan_.opens.size());
  plan_.opens.push_back(std::move(planned));
  if (error && error->find(kNotInBundleText) != std::string::npos) {
    module->open = true;
    return module;
  }
  if (error) {
    raise("ImportError", *error);
    raised_->refused = true;
    return nullptr;
  }
  module->natives.push_back(module);
  naming_files_[module->spec.path].open = plan_.opens.size() - 1;
  native_modules_.push_back(module);
  native_paths_[module->spec.name] = module->spec.path;
  install_values(module);
  const NativeStrings* strings = strings_of(module->spec);
  if (!strings) return module;
  const Module* importer = current_module();
  if (importer && is_library_of_mypyc(module->spec.name) &&
      !source_beside(importer->spec).empty()) {
    import_for_library(*strings);
    return module;
  }
  const std::string source = source_beside(module->spec);
  auto* scope = make<Scope>();
  scope->names = &module->names;
  scope->module = module;
  frames_.push_back({scope, 0, nullptr});
  const auto inside = modules_inside(module->spec);
  const auto find = [this](std::string_view name) { return find_from_loaded(name); };
  for (const NativeImport& wanted : native_imports(*strings, module->spec, finder_, find)) {
    if (!wanted.likely || loaded_module(wanted.name) || needs_back(wanted.name, *module)) continue;
    if (!source.empty() && !is_library_of_mypyc(wanted.name)) continue;
    if (!wanted.stated && !may_need(module->spec.path, wanted.name)) continue;
    if (inside && inside->contains(wanted.name)) {
      dict_set(sys_modules_, wanted.name, opaque(wanted.name));
    } else if (!import_dotted(wanted.name)) {
      if (wanted.stated && fails_for_shadows(wanted.name)) {
        frames_.pop_back();
        return nullptr;
      }
      clear_raised();
    }
  }
  if (fails_for_missing(*strings, module->spec.path)) {
    frames_.pop_back();
    return nullptr;
  }
  // mypyc makes modules in a library of several.
  for (const std::string& name : strings->names)
    if (Module* library =
            is_library_of_mypyc(name) ? as<Module>(loaded_module(name), Type::kModule) : nullptr)
      module->add_natives(*library);
  frames_.pop_back();
  if (!source.empty()) return run_source_of(module, source);
  for (const std::string& own : own_submodules(*strings, module->spec))
    if (!loaded_module(own)) dict_set(sys_modules_, own, opaque(own));
  return module;
}

FileStrings* Interpreter::strings_in(const std::string& library) {
  const auto known = cache_.strings.find(library);
  if (known != cache_.strings.end()) return known->second.get();
  auto file = tree().map(library);
  auto strings = file ? std::make_unique<FileStrings>(std::move(*file)) : nullptr;
  return cache_.strings.emplace(library, std::move(strings)).first->second.get();
}

std::string Interpreter::library_of(std::string_view native_name) {
  for (std::string name(native_name); !name.empty(); name = parent_of(name)) {
    const auto found = native_paths_.find(name);
    if (found != native_paths_.end()) return found->second;
  }
  return "";
}

// By which name it stands in sys.modules; null if by none. It may not tell itself (twisted.python).
const std::string_view* Interpreter::name_of_loaded(Instance* value) {
  const std::string_view* told = text_of(value->names.get("__name__"));
  if (told && loaded_module(*told) == value) return told;
  for (const auto& [name, module] : sys_modules_->items)
    if (module == value) return text_of(name);
  return nullptr;
}

// Of a module of a class of its own that stands in sys.modules (torch.backends): what it says of
// the name is not known, and a file of that name is below it.
Ref Interpreter::submodule_of_replaced(Ref value, std::string_view name) {
  Instance* package = as<Instance>(value, Type::kInstance);
  const std::string_view* own = package ? name_of_loaded(package) : nullptr;
  if (!own) return nullptr;
  const std::string full = fmt::format("{}.{}", *own, name);
  if (Ref known = loaded_module(full)) return known;
  return finder_.find(full, search_of(package, *own)) ? import_dotted(full) : nullptr;
}

bool Interpreter::is_unawaited_failure() const {
  if (raised_->certain && raised_->type) return !expects(raised_->type->name);
  if (!raised_is("ImportError") || expects("ImportError")) return false;
  return !raised_->type || !expects(raised_->type->name);
}

Ref Interpreter::forgive_import(Ref name) {
  if (!name || !name->doubted || raised_->refused) return nullptr;
  raised_->doubted = true;
  if (!is_unawaited_failure()) return nullptr;
  clear_raised();
  undecided("the name of a module that is imported");
  return opaque();
}

// Where the import of a submodule fails, and nobody expects that: whether native code, of which the
// package took all names, may have given it this one, so that no submodule is sought (OCP.TopoDS).
bool Interpreter::may_be_native_name(const Module& package, std::string_view name) {
  if (!is_unawaited_failure() || raised_->refused) return false;
  return std::any_of(package.natives.begin(), package.natives.end(), [&](const Module* native) {
    FileStrings* strings = strings_in(native->spec.path);
    return strings && strings->has(name);
  });
}

// In Python's words, as far as it is known what has no such name.
Ref Interpreter::raise_no_name(Ref value, std::string_view name) {
  Instance* package = as<Instance>(value, Type::kInstance);
  const std::string_view* own = package ? name_of_loaded(package) : nullptr;
  const std::string_view* file = package ? text_of(package->names.get("__file__")) : nullptr;
  std::string words = fmt::format("cannot import name '{}'", name);
  if (own) words += fmt::format(" from '{}' ({})", *own, file ? *file : "unknown location");
  return raise("ImportError", std::move(words));
}

Ref Interpreter::import_from(Ref value, std::string_view name) {
  Module* module = as<Module>(value, Type::kModule);
  if (!module) {
    bool raised = false;
    Ref found = find_attribute(value, name, &raised);
    if (raised || (found && found->type != Type::kOpaque)) return found;
    if (Ref submodule = submodule_of_replaced(value, name)) return submodule;
    if (raised_) return nullptr;
    return found ? found : raise_no_name(value, name);
  }
  bool raised = false;
  Ref found = module_attribute(module, name, &raised);
  if (raised) return nullptr;
  if (found && found->type != Type::kOpaque) return found;
  const std::string full = module->spec.name + "." + std::string(name);
  const bool package = module->names.contains("__path__");
  // What native code may have given the package is no submodule that a finder is asked for.
  bool may_be_found = false;
  bool* is_unsure = module->may_have_more() ? &may_be_found : nullptr;
  if (package && !found) {
    if (Ref known = loaded_module(full)) return known;
    if (finder_.find(full, search_of(module, module->spec.name))) {
      Ref submodule = import_dotted(full);
      if (submodule || !may_be_native_name(*module, name)) return submodule;
      clear_raised();
      undecided("whether '" + full + "' is a module or a name of native code");
      return opaque(module->spec.name, name);
    }
    for (const bool before : {true, false}) {
      if (Ref custom = ask_custom_finders(full, module, before, is_unsure)) return custom;
      if (raised_) return nullptr;
    }
  }
  if (found) return found;
  if (Ref known = loaded_module(full)) return known;
  if (may_have(*module, name, "ImportError") ||
      (!expects("ImportError") && is_given(*module, name))) {
    Ref made = opaque(module->spec.name, name);
    // It may be a submodule that native code has made, which programs look for in sys.modules
    // (open3d gives them other names).
    if (module->spec.kind == ModuleKind::kNative) dict_set(sys_modules_, full, made);
    return made;
  }
  if (may_be_found) return found_or_not(full, kByFinder);
  if (module->state == Module::kRunning)
    return raise("ImportError",
                 fmt::format("cannot import name '{}' from partially initialized module '{}' (most "
                             "likely due to a circular import)",
                             name, module->spec.name));
  const std::string& path = module->spec.path;
  return raise("ImportError",
               fmt::format("cannot import name '{}' from '{}' ({})", name, module->spec.name,
                           path.empty() ? "unknown location" : path));
}

// Where a function of the standard library was called from, else what runs.
const Interpreter::Frame* Interpreter::frame_of_point() const {
  for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
    if (frame->scope->module && !is_standard(frame->scope->module)) return &*frame;
    if (frame->scope->is_module()) break;
  }
  return frames_.empty() ? nullptr : &frames_.back();
}

// A point is one, however often the program comes there.
Undecided& Interpreter::undecided(std::string what) {
  Undecided point;
  if (const Frame* frame = frame_of_point()) {
    if (frame->scope->module) point.file = frame->scope->module->spec.path;
    point.line = frame->line;
  }
  point.what = std::move(what);
  const auto [known, is_new] = undecided_at_.try_emplace(
      fmt::format("{}:{}:{}", point.line, point.file, point.what), plan_.undecided.size());
  if (is_new) plan_.undecided.push_back(std::move(point));
  return plan_.undecided[known->second];
}

void Interpreter::note(PlanEvent::Kind kind, size_t index) {
  if (started_) plan_.events.push_back({kind, static_cast<uint32_t>(index)});
}

void Interpreter::note_sought(PlanEvent::Kind kind, std::string_view name) {
  if (!started_) return;
  note(kind, plan_.sought.size());
  plan_.sought.emplace_back(name);
}

std::optional<std::string> Interpreter::absolute(std::string_view path) const {
  if (path.starts_with('/')) return std::string(path);
  if (!working_directory) return std::nullopt;
  return join_normal(*working_directory, path);
}

bool Interpreter::is_standard(const Module* module) const {
  const std::string& library = finder_.standard_library();
  return module && module->spec.path.starts_with(library) &&
         module->spec.path.find("-packages/", library.size()) == std::string::npos;
}

bool Interpreter::is_installed(const Module* module) const {
  return module && !is_standard(module) &&
         module->spec.path.find("-packages/") != std::string::npos;
}

void Interpreter::note_variable_asked(std::string_view name) {
  note_sought(PlanEvent::kVariable, name);
  if (started_ && is_installed(current_module()) && !variables_asked_.contains(name))
    variables_asked_.emplace(
        name, std::pair(current_module()->spec.path, static_cast<uint32_t>(frames_.back().line)));
}

// What is known of the value of a variable: of a secret, that it is one. Nothing is told of what it
// is, and nothing follows from it: a plan of a bundle, in which it is not, is the same.
Ref Interpreter::value_of_variable(std::string_view name, Ref value) {
  const std::string_view* text = text_of(value);
  if (!text || !holds_secret(name, *text)) return value;
  return doubt(string(kHiddenSecret));
}

void Interpreter::note_variable_set(Ref key, Ref value) {
  const std::string_view* name = text_of(key);
  variables_set_.emplace_back(name ? *name : "");
  if (const std::string_view* text = name && names_secret(*name) ? text_of(value) : nullptr)
    secrets_set_[std::string(*name)] = *text;
  const Module* module = current_module();
  if (!name || !module || is_standard(module) || is_installed(module)) return;
  const Ref before = dict_get(environment_, key);
  if (before && KeyTraits::equal(before, value)) return;
  PlannedVariable variable{std::string(*name),
                           module->spec.path,
                           static_cast<uint32_t>(frames_.back().line),
                           "",
                           0,
                           static_cast<uint32_t>(plan_.opens.size())};
  if (const auto asked = variables_asked_.find(*name); asked != variables_asked_.end())
    std::tie(variable.asked_by, variable.asked_line) = asked->second;
  plan_.variables_changed.push_back(std::move(variable));
}

void Interpreter::observe_all(const Dict* dict) {
  if (!dict || !dict->of_environment) return;
  for (const auto& [name, value] : dict->items)
    if (const std::string_view* text = text_of(name)) note_sought(PlanEvent::kVariable, *text);
}

void Interpreter::observe(const Dict* dict, Ref key) {
  const std::string_view* name = text_of(key);
  if (!name) return;
  if (dict == environment_)
    note_variable_asked(*name);
  else if (dict->of_environment)
    note_sought(PlanEvent::kVariable, *name);
  // The standard library asks what is loaded to describe it (logging: multiprocessing).
  // And a finder asks of what it is to find: that it is not loaded, or nobody would ask it.
  const bool by_finder = !asked_finders_.empty() && asked_finders_.back().second == *name;
  if (dict == sys_modules_ && !by_finder && !loaded_module(*name) && !is_standard(current_module()))
    note_sought(PlanEvent::kMissing, *name);
}

Ref Interpreter::raise(std::string_view builtin, std::string message) {
  Raised raised;
  raised.type = builtin_class(builtin);
  raised.message = std::move(message);
  if (!frames_.empty() && current_module()) {
    raised.file = current_module()->spec.path;
    raised.line = frames_.back().line;
  }
  raised.in_import = is_importing();
  if (raised.type) {
    auto* value = make<Instance>(raised.type);
    value->arguments = list({string(raised.message)}, Type::kTuple);
    value->names["args"] = value->arguments;
    value->names["msg"] = value->arguments->items[0];
    value->open = true;
    raised.value = value;
  }
  raised_ = std::move(raised);
  effects_++;
  return nullptr;
}

Ref Interpreter::raise_certain(std::string_view builtin, std::string message) {
  raise(builtin, std::move(message));
  raised_->certain = true;
  return nullptr;
}

Ref Interpreter::raise_declared(std::string_view builtin, std::string message) {
  raise(builtin, std::move(message));
  raised_->declared = true;
  return nullptr;
}

Ref Interpreter::raise_exit(Ref status) {
  const bool tells = status && status->type != Type::kNone;
  raise("SystemExit", std::string(tells ? display(status).value_or("") : ""));
  if (auto* value = as<Instance>(raised_->value, Type::kInstance)) {
    value->arguments = list(tells ? std::vector{status} : std::vector<Ref>{}, Type::kTuple);
    value->names["args"] = value->arguments;
    value->names["code"] = tells ? status : none_;
  }
  note_refusal(*raised_);
  note_lack(*raised_, status);
  return nullptr;
}

Ref Interpreter::end_process(std::string call) {
  raise("", std::move(call));
  ended_ = raised_;
  return nullptr;
}

bool Interpreter::is_importing() const {
  return std::any_of(frames_.begin(), frames_.end(), [](const Frame& frame) {
    const std::string& name = frame.scope->module->spec.name;
    return frame.scope->is_module() && !name.empty() && name != "__main__";
  });
}

}  // namespace cohabit::python
