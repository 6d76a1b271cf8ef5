// The interpreter's own state: builtins, dictionaries, start-up, and the plan at the end.
#include <fmt/format.h>

#include <pthread.h>
#include <algorithm>
#include <cstdio>

#include "base/hidden_values.h"
#include "base/secrets.h"
#include "base/text.h"
#include "imports/interpreter.h"

namespace cohabit::python {
namespace {

struct ExceptionRow {
  std::string_view name, base;
};

// The hierarchy of the reference manual, as far as programs catch it on import.
constexpr ExceptionRow kExceptions[] = {
    {"BaseException", "object"},
    {"SystemExit", "BaseException"},
    {"KeyboardInterrupt", "BaseException"},
    {"GeneratorExit", "BaseException"},
    {"Exception", "BaseException"},
    {"StopIteration", "Exception"},
    {"StopAsyncIteration", "Exception"},
    {"ArithmeticError", "Exception"},
    {"ZeroDivisionError", "ArithmeticError"},
    {"OverflowError", "ArithmeticError"},
    {"AssertionError", "Exception"},
    {"AttributeError", "Exception"},
    {"BufferError", "Exception"},
    {"EOFError", "Exception"},
    {"ImportError", "Exception"},
    {"ModuleNotFoundError", "ImportError"},
    {"LookupError", "Exception"},
    {"IndexError", "LookupError"},
    {"KeyError", "LookupError"},
    {"MemoryError", "Exception"},
    {"NameError", "Exception"},
    {"UnboundLocalError", "NameError"},
    {"OSError", "Exception"},
    {"FileNotFoundError", "OSError"},
    {"PermissionError", "OSError"},
    {"BlockingIOError", "OSError"},
    {"ChildProcessError", "OSError"},
    {"ConnectionError", "OSError"},
    {"BrokenPipeError", "ConnectionError"},
    {"ConnectionAbortedError", "ConnectionError"},
    {"ConnectionRefusedError", "ConnectionError"},
    {"ConnectionResetError", "ConnectionError"},
    {"FileExistsError", "OSError"},
    {"InterruptedError", "OSError"},
    {"IsADirectoryError", "OSError"},
    {"NotADirectoryError", "OSError"},
    {"ProcessLookupError", "OSError"},
    {"TimeoutError", "OSError"},
    {"ReferenceError", "Exception"},
    {"RuntimeError", "Exception"},
    {"NotImplementedError", "RuntimeError"},
    {"RecursionError", "RuntimeError"},
    {"SyntaxError", "Exception"},
    {"IndentationError", "SyntaxError"},
    {"TabError", "IndentationError"},
    {"SystemError", "Exception"},
    {"TypeError", "Exception"},
    {"ValueError", "Exception"},
    {"UnicodeError", "ValueError"},
    {"UnicodeDecodeError", "UnicodeError"},
    {"UnicodeEncodeError", "UnicodeError"},
    {"Warning", "Exception"},
    {"DeprecationWarning", "Warning"},
    {"PendingDeprecationWarning", "Warning"},
    {"RuntimeWarning", "Warning"},
    {"SyntaxWarning", "Warning"},
    {"UserWarning", "Warning"},
    {"FutureWarning", "Warning"},
    {"ImportWarning", "Warning"},
    {"UnicodeWarning", "Warning"},
    {"BytesWarning", "Warning"},
    {"ResourceWarning", "Warning"},
    {"EncodingWarning", "Warning"},
    {"BaseExceptionGroup", "BaseException"},
    {"ExceptionGroup", "Exception"},
};

constexpr std::string_view kTypes[] = {
    "object", "type", "str",  "bytes",     "int",     "bool",      "float",      "list",
    "tuple",  "set",  "dict", "frozenset", "complex", "bytearray", "memoryview", "slice"};
constexpr std::string_view kInternalTypes[] = {
    "partial",      "Pattern",     "Match",
    "NoneType",     "ModuleType",  "ModuleSpec",
    "Loader",       "FileFinder",  "PackageNotFoundError",
    "namespace",    "File",        "Frame",
    "Distribution", "Requirement", "SpecifierSet",
    "PathFinder",   "CFuncPtr",    "Executor",
    "Future",       "EventLoop",   "coroutine",
    "EntryPoint",   "EntryPoints", "GenericAlias"};

}  // namespace

Interpreter::Interpreter(Finder& finder, Images& images, const Distributions& distributions,
                         NativeLoader& loader, const PlanRequest& request, PlanCache& cache)
    : finder_(finder),
      images_(images),
      distributions_(distributions),
      loader_(loader),
      request_(request),
      redaction_(request.environment, request.arguments),
      cache_(cache) {
  none_ = make<Value>(Type::kNone);
  true_ = make<Int>(Type::kBool, 1);
  false_ = make<Int>(Type::kBool, 0);
  opaque_ = make<Opaque>();
  sys_modules_ = make<Dict>();
  environment_ = make<Dict>();
  environment_->of_environment = true;
  sys_path_ = make<Sequence>(Type::kList);
  meta_path_ = make<Sequence>(Type::kList);
  for (const auto& [name, value] : request.environment) dict_set(environment_, name, string(value));
  if (tree().has_process()) working_directory = tree().current_directory();
  if (working_directory == "") working_directory.reset();
  for (const std::string& directory : finder.path()) sys_path_->items.push_back(string(directory));
  for (const std::string_view name : kTypes) {
    auto* type = make<Class>();
    type->name = name;
    if (name != "object") type->bases.push_back(static_cast<Class*>(builtins_["object"]));
    builtins_[name] = type;
  }
  for (const ExceptionRow& row : kExceptions) {
    auto* type = make<Class>();
    type->name = row.name;
    type->bases.push_back(static_cast<Class*>(builtins_[row.base]));
    builtins_[row.name] = type;
  }
  for (const std::string_view name : kInternalTypes) {
    auto* type = make<Class>();
    type->name = name;
    type->bases.push_back(static_cast<Class*>(
        builtins_[name == "PackageNotFoundError" ? "ModuleNotFoundError" : "object"]));
    internal_[name] = type;
    // super().__init__ of those that derive from it.
    if (const ModelRow* start = find_model(name, "__init__"))
      type->names["__init__"] = make<Model>(start->name, start->function);
  }
  for (const char* name : {"ModuleType", "CFuncPtr", "GenericAlias"})
    static_cast<Class*>(internal_[name])->open = true;
  path_finder_ = instance_of("PathFinder");
  meta_path_->items.push_back(path_finder_);
  for (const char* name : {"IOError", "EnvironmentError"}) builtins_[name] = builtins_["OSError"];
  static_cast<Class*>(builtins_["bool"])->bases.push_back(static_cast<Class*>(builtins_["int"]));
  for (const ModelRow* row : models_of("builtins"))
    builtins_[row->name.substr(row->name.rfind('.') + 1)] = make<Model>(row->name, row->function);
  builtins_["__debug__"] = true_;
}

Class* Interpreter::builtin_class(std::string_view name) {
  Ref found = internal_.get(name);
  return as<Class>(found ? found : builtins_.get(name), Type::kClass);
}

namespace {

// What the name of an extension module says of the interpreter: ".cpython-313t-x86_64-linux-gnu.so"
// has the flags "t" and that triplet. sysconfig imports a module with both in its name: where that
// is not there, nothing is said.
struct BuildNames {
  std::string_view flags, triplet;
};
std::optional<BuildNames> build_names(Finder& finder) {
  const auto& python = finder.interpreter();
  const std::string begin = fmt::format(".cpython-{}{}", python.major, python.minor);
  for (const std::string_view suffix : finder.extension_suffixes()) {
    const size_t dash = suffix.find('-', begin.size());
    if (!suffix.starts_with(begin) || dash == suffix.npos || !suffix.ends_with(".so")) continue;
    const std::string_view flags = suffix.substr(begin.size(), dash - begin.size());
    const std::string_view triplet = suffix.substr(dash + 1, suffix.size() - dash - 4);
    if (finder.find_dotted(fmt::format("_sysconfigdata_{}_linux_{}", flags, triplet)))
      return BuildNames{flags, triplet};
  }
  return std::nullopt;
}

}  // namespace

// What native code puts into modules, as far as imports depend on it.
void Interpreter::install_values(Module* module) {
  Namespace& names = module->names;
  const auto& python = finder_.interpreter();
  if (module->spec.name == "builtins") {
    for (const auto& [name, value] : builtins_) names[name] = value;
  } else if (module->spec.name == "_ctypes" || module->spec.name == "posix") {
    static constexpr std::pair<std::string_view, int> kFlags[] = {
        {"RTLD_LAZY", 1},  {"RTLD_NOW", 2},        {"RTLD_NOLOAD", 4},       {"RTLD_DEEPBIND", 8},
        {"RTLD_LOCAL", 0}, {"RTLD_GLOBAL", 0x100}, {"RTLD_NODELETE", 0x1000}};
    static constexpr std::pair<std::string_view, int> kRights[] = {
        {"F_OK", 0}, {"X_OK", 1}, {"W_OK", 2}, {"R_OK", 4}};
    for (const auto& [name, value] : kFlags) names[name] = integer(value);
    if (module->spec.name == "_ctypes")
      names["CFuncPtr"] = builtin_class("CFuncPtr");
    else
      for (const auto& [name, value] : kRights) names[name] = integer(value);
  } else if (module->spec.name == "os") {
    names["environ"] = environment_;
  } else if (module->spec.name == "re") {
    static constexpr std::pair<std::string_view, int> kFlags[] = {
        {"I", 2},   {"IGNORECASE", 2}, {"L", 4},        {"LOCALE", 4},   {"M", 8},
        {"S", 16},  {"MULTILINE", 8},  {"U", 32},       {"UNICODE", 32}, {"X", 64},
        {"A", 256}, {"DOTALL", 16},    {"VERBOSE", 64}, {"ASCII", 256}};
    for (const auto& [name, value] : kFlags) names[name] = integer(value);
    if (python.minor >= 11) names["NOFLAG"] = integer(0);
  } else if (module->spec.name == "_frozen_importlib_external") {
    names["SOURCE_SUFFIXES"] = list({string(".py")});
    names["BYTECODE_SUFFIXES"] = list({string(".pyc")});
    auto* suffixes = list({});
    for (const std::string& suffix : finder_.extension_suffixes())
      suffixes->items.push_back(string(suffix));
    names["EXTENSION_SUFFIXES"] = suffixes;
  } else if (module->spec.name == "types") {
    if (python.minor >= 9) names["GenericAlias"] = builtin_class("GenericAlias");
  } else if (module->spec.name == "importlib.metadata") {
    names["PackageNotFoundError"] = builtin_class("PackageNotFoundError");
  } else if (module->spec.name == "sys") {
    const auto text = [this](std::string_view value) { return string(value); };
    names["platform"] = text("linux");
    names["byteorder"] = text("little");
    names["maxsize"] = integer(INT64_MAX);
    names["maxunicode"] = integer(0x10ffff);
    names["prefix"] = names["exec_prefix"] = text(python.prefix);
    names["base_prefix"] = names["base_exec_prefix"] = text(python.base_prefix);
    names["executable"] = text(python.executable);
    names["version"] = text(python.version + " (main)");
    int micro = 0;
    if (std::sscanf(python.version.c_str(), "%*d.%*d.%d", &micro) != 1) micro = 0;
    names["version_info"] = list(
        {integer(python.major), integer(python.minor), integer(micro), text("final"), integer(0)},
        Type::kTuple);
    names["hexversion"] =
        integer((int64_t{python.major} << 24) + (python.minor << 16) + (micro << 8) + 0xf0);
    Instance* implementation = instance_of("namespace");
    implementation->names["name"] = text("cpython");
    implementation->names["cache_tag"] =
        text(fmt::format("cpython-{}{}", python.major, python.minor));
    implementation->names["version"] = names["version_info"];
    implementation->open = true;
    if (const auto build = build_names(finder_)) {
      names["abiflags"] = text(build->flags);
      implementation->names["_multiarch"] = text(build->triplet);
    }
    names["implementation"] = implementation;
    names["modules"] = sys_modules_;
    names["path"] = sys_path_;
    names["meta_path"] = meta_path_;
    std::vector<Ref> argv = {text(request_.code_file.empty() ? "-c" : request_.code_file)};
    for (const std::string& argument : request_.arguments) argv.push_back(text(argument));
    names["argv"] = list(std::move(argv));
    names["warnoptions"] = list({});
    names["builtin_module_names"] = list({text("posix"), text("sys")}, Type::kTuple);
    names["path_hooks"] = list({});
    names["flags"] = opaque();
    names["dont_write_bytecode"] = false_;
  }
}

Instance* Interpreter::instance_of(std::string_view builtin) {
  return make<Instance>(builtin_class(builtin));
}

Sequence* Interpreter::list(std::span<const Ref> items, Type type) {
  auto* result = make<Sequence>(type);
  result->items.assign(items.begin(), items.end());
  return result;
}

// The items may be the sequence's own: what has grown leaves the old array as it is.
void Interpreter::append(Sequence* sequence, std::span<const Ref> items) {
  List& own = sequence->items;
  const size_t room = kMostItems - std::min(kMostItems, own.size());
  const size_t count = std::min(room, items.size());
  if (own.size() + count > own.capacity()) own.reserve(2 * (own.size() + count));
  for (size_t i = 0; i < count; i++) own.push_back(items[i]);
  if (count < items.size()) sequence->open = true;
}

// 0: the running code's.
Module* Interpreter::module_of_frame(size_t depth) {
  return depth < frames_.size() ? frames_[frames_.size() - 1 - depth].scope->module : nullptr;
}

std::string_view Interpreter::keep_dotted(std::string_view a, std::string_view b) {
  return keep(fmt::format("{}.{}", a, b));
}

// --- dictionaries

bool is_key(Ref value) {
  switch (value->type) {
    case Type::kStr:
    case Type::kBytes:
    case Type::kPath:
    case Type::kInt:
    case Type::kBool:
    case Type::kNone:
    case Type::kFunction:
    case Type::kClass:
    case Type::kModule:
    case Type::kModel:
      return true;
    case Type::kTuple: {
      const List& items = static_cast<Sequence*>(value)->items;
      return std::all_of(items.begin(), items.end(), is_key);
    }
    default:
      return false;
  }
}

uint32_t KeyTraits::hash(Ref key) {
  switch (key->type) {
    case Type::kStr:
    case Type::kBytes:
    case Type::kPath:
      return hash_of_text(static_cast<const Str*>(key)->text);
    case Type::kInt:
    case Type::kBool:
      return hash_of_number(static_cast<uint64_t>(static_cast<const Int*>(key)->value));
    case Type::kNone:
      return 1;
    case Type::kTuple: {
      uint32_t result = 2;
      for (Ref item : static_cast<Sequence*>(key)->items) result = 31 * result + hash(item);
      return result;
    }
    default:
      return hash_of_number(reinterpret_cast<uintptr_t>(key));
  }
}

bool KeyTraits::equal(Ref a, Ref b) {
  if (a == b) return true;
  const auto kind = [](Ref value) {  // 1 == True
    return value->type == Type::kBool ? Type::kInt : value->type;
  };
  if (kind(a) != kind(b)) return false;
  switch (kind(a)) {
    case Type::kStr:
    case Type::kBytes:
    case Type::kPath:
      return static_cast<const Str*>(a)->text == static_cast<const Str*>(b)->text;
    case Type::kInt:
      return static_cast<const Int*>(a)->value == static_cast<const Int*>(b)->value;
    case Type::kNone:
      return true;
    case Type::kTuple: {
      const List &x = static_cast<Sequence*>(a)->items, &y = static_cast<Sequence*>(b)->items;
      return std::equal(x.begin(), x.end(), y.begin(), y.end(), equal);
    }
    default:
      return false;
  }
}

// Not all variables of a module stand in a dictionary that stands for them.
Ref Interpreter::dict_get(const Dict* dict, Ref key) {
  Ref value = is_key(key) ? dict->items.get(key) : nullptr;
  if (value || !dict->variables_of) return value;
  const std::string_view* name = text_of(key);
  return name ? dict->variables_of->names.get(*name) : nullptr;
}

Ref Interpreter::dict_get(const Dict* dict, std::string_view text) {
  Str key(Type::kStr, text);
  return dict_get(dict, &key);
}

void Interpreter::dict_set(Dict* dict, Ref key, Ref value) {
  if (dict == sys_modules_ || dict == environment_) effects_++;
  if (dict == environment_ && started_) note_variable_set(key, value);
  if (dict == environment_ && text_of(key)) value = value_of_variable(*text_of(key), value);
  if (is_key(key)) {
    dict->items[key] = value;
  } else {
    dict->open_all();
    let_out(value);  // nobody finds it there
    if (dict == sys_modules_) note_registered(key);
  }
  const std::string_view* name = text_of(key);
  if (name && dict->variables_of) set_variable(*dict->variables_of, *name, value);
  if (name && dict->attributes_of) dict->attributes_of->names[keep(*name)] = value;
}

// From outside the module's own code. `__path__` moves where its submodules are looked for.
void Interpreter::set_variable(Module& module, std::string_view name, Ref value) {
  module.names[keep(name)] = value;
  const std::string_view* text = name == "__package__" ? text_of(value) : nullptr;
  if (text) module.package = *text;
}

void Interpreter::dict_erase(Dict* dict, Ref key) {
  if (!is_key(key)) return;
  if (dict == environment_ && started_)
    variables_set_.emplace_back(text_of(key) ? *text_of(key) : "");
  dict->items.erase(key);
  const std::string_view* name = text_of(key);
  if (name && dict->variables_of) dict->variables_of->names.erase(*name);
  if (name && dict->attributes_of) dict->attributes_of->names.erase(*name);
}

void Interpreter::dict_set(Dict* dict, std::string_view text, Ref value) {
  if (dict == sys_modules_ || dict == environment_) effects_++;
  Str key(Type::kStr, text);
  if (dict == environment_ && started_) note_variable_set(&key, value);
  if (dict == environment_) value = value_of_variable(text, value);
  if (Ref* known = dict->items.find(&key)) {
    *known = value;
  } else {
    dict->items[constant(keep(text))] = value;
  }
  if (dict->variables_of) set_variable(*dict->variables_of, text, value);
  if (dict->attributes_of) dict->attributes_of->names[keep(text)] = value;
}

// globals() of the module's code, its __dict__.
Dict* Interpreter::variables_of(Module* module) {
  auto* dict = make<Dict>();
  for (const auto& [name, value] : module->names) dict_set(dict, name, value);
  dict->open = true;
  dict->variables_of = module;
  return dict;
}

void Interpreter::dict_update(Dict* dict, Ref other) {
  if (const Dict* added = as<Dict>(other, Type::kDict)) {
    if (added != dict)
      for (const auto& [key, value] : added->items) dict_set(dict, key, value);
    if (added->open || (added->partial && dict->variables_of)) dict->open_all();
    dict->partial |= added->partial;
    return;
  }
  // A class of the program's own that has keys: each is there, with a value that is not known.
  if (Instance* mapping = as<Instance>(other, Type::kInstance);
      mapping && class_attribute(mapping->of, "__getitem__")) {
    Ref keys = iterated(mapping);
    clear_raised();
    const auto known = keys && keys != mapping ? elements(keys) : std::nullopt;
    if (!known || holds_more(keys)) dict->open_all();
    for (Ref key : known.value_or(std::span<const Ref>())) dict_set(dict, key, opaque());
    return;
  }
  const auto pairs = other ? elements(other) : std::nullopt;
  if (!pairs || holds_more(other)) dict->open_all();
  for (Ref pair : pairs.value_or(std::span<const Ref>())) {
    const Sequence* parts = sequence_of(pair);
    if (parts && !parts->open && parts->items.size() == 2)
      dict_set(dict, parts->items[0], parts->items[1]);
    else
      dict->open_all();
  }
}

Ref Interpreter::subscript(Ref object, Ref key) {
  if (Instance* instance = as<Instance>(object, Type::kInstance)) {
    if (Ref method = class_attribute(instance->of, "__getitem__")) {
      return call(bind_method(method, instance, instance->of), Arguments(arena_, {key}));
    }
    if (!instance->of->module)
      if (Ref method = method_of(instance->of->name, "__getitem__", instance))
        return call(method, Arguments(arena_, {key}));
    if (!instance->items) return opaque_;
    const bool is_missing = !instance->items->open && !dict_get(instance->items, key);
    if (Ref method = is_missing ? own_method(instance, "__missing__") : nullptr)
      return call(method, Arguments(arena_, {key}));
    object = instance->items;
  }
  if (Dict* dict = as<Dict>(object, Type::kDict)) {
    observe(dict, key);
    if (Ref value = dict_get(dict, key)) return value;
    if (dict->open || !is_key(key)) return opaque_;
    if (dict->factory) {
      Ref value = call(dict->factory, {});
      if (value) dict_set(dict, key, value);
      return value;
    }
    if (!expects("KeyError")) return opaque_;
    return raise("KeyError", std::string(display(key).value_or("")));
  }
  Int* at = as<Int>(key, Type::kInt);
  if (Sequence* sequence = sequence_of(object)) {
    if (!at) return opaque_;
    const auto size = static_cast<int64_t>(sequence->items.size());
    const int64_t place = at->value < 0 ? at->value + size : at->value;
    if (sequence->open && at->value < 0) return opaque_;
    if (place >= 0 && place < size) return sequence->items[static_cast<size_t>(place)];
    return sequence->open || !expects("IndexError")
               ? opaque_
               : raise("IndexError", "list index out of range");
  }
  if (object->type == Type::kStr && at) {
    const std::string_view text = static_cast<Str*>(object)->text;
    const auto size = static_cast<int64_t>(text.size());
    const int64_t place = at->value < 0 ? at->value + size : at->value;
    if (place >= 0 && place < size) return constant(text.substr(static_cast<size_t>(place), 1));
    return expects("IndexError") ? raise("IndexError", "string index out of range") : opaque_;
  }
  if (auto* type = as<Class>(object, Type::kClass)) {
    if (is_enumeration(type)) {
      const std::string_view* name = text_of(key);
      Ref member = name ? type->names.get(*name) : nullptr;
      if (member && member->type == Type::kInstance) return member;
      const Class* meta = known_metaclass(type);
      const bool are_all = name && !member && meta && is_standard(meta->module) &&
                           is_own_code(type->module) && !type->decorated && members_of(type);
      return are_all && expects("KeyError") ? raise("KeyError", std::string(*name)) : opaque_;
    }
    auto* hook = as<Function>(class_attribute(type, "__class_getitem__"), Type::kFunction);
    if (hook && is_own_code(type->module))
      return call(bind_method(hook, nullptr, type), Arguments(arena_, {key}));
    return refuse_subscript(object) ? nullptr : object;
  }
  return opaque_;
}

namespace {

// Both unknown, and of the one no more is known than of the other.
bool are_unknown_alike(Ref a, Ref b) {
  if (a->type == Type::kOpaque) return b->type == Type::kOpaque;
  const Sequence *x = sequence_of(a), *y = sequence_of(b);
  return x && y && x->open && y->open && x->items.size() == y->items.size();
}

// Whether storing tells nothing new: the value is there, or an unknown one takes the place of its
// like, or its key is not known where others are not.
bool is_known_item(const Dict* dict, Ref key, Ref value) {
  if (!is_key(key)) return dict->open && (!dict->variables_of || dict->variables_of->open);
  const Ref before = dict->items.get(key);
  return before && (before == value || are_unknown_alike(before, value));
}

}  // namespace

bool Interpreter::set_item(Ref object, Ref key, Ref value) {
  const Type type = object->type;
  if ((type == Type::kStr || type == Type::kBytes || type == Type::kTuple || type == Type::kInt ||
       type == Type::kBool) &&
      expects("TypeError")) {
    raise("TypeError", "the object does not support item assignment");
    return false;
  }
  if (Dict* dict = as<Dict>(object, Type::kDict); dict && is_known_item(dict, key, value)) {
    if (is_key(key)) dict->items[key] = value;
    return true;
  }
  effects_++;
  if (Instance* instance = as<Instance>(object, Type::kInstance)) {
    if (Ref method = class_attribute(instance->of, "__setitem__")) {
      return call(bind_method(method, instance, instance->of), Arguments(arena_, {key, value})) !=
             nullptr;
    }
    if (!instance->items) return true;
    object = instance->items;
  }
  if (Dict* dict = as<Dict>(object, Type::kDict)) {
    dict_set(dict, key, value);
    return true;
  }
  if (Sequence* sequence = sequence_of(object)) {
    Int* at = as<Int>(key, Type::kInt);
    const auto size = static_cast<int64_t>(sequence->items.size());
    const int64_t place = at ? (at->value < 0 ? at->value + size : at->value) : -1;
    if (place >= 0 && place < size) {
      sequence->items[static_cast<size_t>(place)] = value;
    } else {
      sequence->open = true;
    }
  }
  return true;
}

Ref Interpreter::shown(Ref value) {
  Ref method = own_method(value, "__str__");
  return method ? call(method, {}) : value;
}

std::optional<std::string_view> Interpreter::display(Ref value) {
  switch (value->type) {
    case Type::kStr:
    case Type::kPath:
    case Type::kVersion:
      return static_cast<Str*>(value)->text;
    case Type::kInt:
      return keep(std::to_string(static_cast<Int*>(value)->value));
    case Type::kBool:
      return static_cast<Int*>(value)->value ? "True" : "False";
    case Type::kNone:
      return "None";
    case Type::kInstance: {
      auto* instance = static_cast<Instance*>(value);
      if (Ref text = plain_text(value, {"__str__", "__format__"}); text != value)
        return display(text);
      if (!raised_is("BaseException") && instance->of->module) return std::nullopt;
      if (instance->arguments && instance->arguments->items.size() == 1 &&
          derives_from(instance->of, builtin_class("BaseException")) &&
          !derives_from(instance->of, builtin_class("KeyError")))
        return display(instance->arguments->items[0]);
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

// --- running

// Whether what has been raised since there were so many guesses ends the process: site takes other
// errors. What only a guess has led to is told.
bool Interpreter::ends_start(uint64_t guesses) {
  if (!raised_is("SystemExit")) return false;
  if (guesses == guesses_ && !raised_->doubted) return true;
  plan_.undecided.push_back({raised_->file, raised_->line, "start-up may end the process here"});
  return false;
}

void Interpreter::start_up() {
  // The modules that site and the codecs need; io, abc and the like are frozen or built in, but
  // their sources say the same.
  for (const char* name : {"sys",
                           "builtins",
                           "_frozen_importlib",
                           "_imp",
                           "_thread",
                           "_weakref",
                           "_io",
                           "marshal",
                           "posix",
                           "_frozen_importlib_external",
                           "time",
                           "zipimport",
                           "_codecs",
                           "codecs",
                           "encodings.aliases",
                           "encodings",
                           "encodings.utf_8",
                           "_signal",
                           "_abc",
                           "abc",
                           "io",
                           "_stat",
                           "stat",
                           "_collections_abc",
                           "os",
                           "os.path",
                           "_sitebuiltins",
                           "site"}) {
    if (std::string_view(name) == "os.path") {
      if (Ref path = loaded_module("posixpath")) dict_set(sys_modules_, "os.path", path);
      continue;
    }
    if (!import_dotted(name)) clear_raised();
  }
  std::string given_up;  // a file of which a line has failed: site leaves out the rest
  for (const PthLine& line : finder_.pth_lines()) {
    if (line.file == given_up) continue;
    auto* module = new_module({"site", ModuleKind::kSource, line.file, {}});
    auto syntax = std::make_unique<Syntax>(line.code);
    module->syntax = syntax.get();
    made_.push_back(std::move(syntax));
    const uint64_t guesses = guesses_;
    if (module->syntax->errors().empty() && run_file(module)) continue;
    if (ends_start(guesses)) return;
    clear_raised();
    given_up = line.file;
  }
  for (const char* name : {"sitecustomize", "usercustomize"}) {
    const uint64_t guesses = guesses_;
    if (import_dotted(name)) continue;
    if (ends_start(guesses)) return;
    clear_raised();
  }
}

// runpy's way from NAME to the code that runs: NAME itself, or NAME.__main__ of a package. Nothing:
// it raised.
std::optional<ModuleSpec> Interpreter::find_main(const std::string& name) {
  std::optional<ModuleSpec> spec = find_spec(name);
  if (spec && (spec->is_package() || spec->kind == ModuleKind::kNamespace)) {
    if (!import_dotted(name)) return std::nullopt;
    spec = find_spec(name + ".__main__");
    if (!spec && !raised_) {
      raise("ImportError",
            fmt::format("No module named {0}.__main__; '{0}' is a package and cannot "
                        "be directly executed",
                        name));
      return std::nullopt;
    }
  }
  if (raised_ || (spec && spec->kind == ModuleKind::kSource)) return spec;
  raise(spec ? "ImportError" : "ModuleNotFoundError",
        fmt::format("{} '{}'", spec ? "No code object available for" : "No module named",
                    spec ? spec->name : name));
  return std::nullopt;
}

// What IPython gives a notebook, and has loaded itself: what that is, is not planned.
void Interpreter::add_shell_names(Module* module) {
  for (const char* name : {"get_ipython", "display", "In", "Out", "_", "__", "___", "_ih", "_oh",
                           "_dh", "exit", "quit"})
    module->names[name] = opaque(name);
  for (const char* name : {"IPython", "IPython.display", "ipykernel"})
    if (!loaded_module(name)) dict_set(sys_modules_, name, opaque(name));
}

void Interpreter::run_program() {
  std::string file = request_.code_file, package, spec_name;
  if (!request_.run_module.empty()) {
    const auto spec = find_main(request_.run_module);
    if (!spec) return;
    file = spec->path;
    spec_name = spec->name;
    package = spec->name.substr(0, std::min(spec->name.rfind('.'), spec->name.size()));
    if (package == spec->name) package.clear();
  }
  auto* module = new_module({"__main__", ModuleKind::kSource, file, {}});
  module->package = package;
  if (request_.code_file.ends_with(".ipynb")) add_shell_names(module);
  // A script has neither, what `-m` runs is described under its own name.
  if (request_.run_module.empty()) {
    module->names["__package__"] = module->names["__spec__"] = none_;
  } else {
    module->names["__package__"] = string(package);
    Instance* described = as<Instance>(module->names["__spec__"], Type::kInstance);
    if (described) {
      described->names["name"] = string(spec_name);
      described->names["parent"] = string(package);
    }
  }
  dict_set(sys_modules_, "__main__", module);
  if (request_.code.empty() && !file.empty()) {
    (void)(request_.run_module.empty() ? load_script(module) : load_source(module));
    return;
  }
  std::string code = request_.code;
  redaction_.apply(code);
  for (const std::string& name : request_.imports) code += "import " + name + "\n";
  auto syntax = std::make_unique<Syntax>(code);
  module->syntax = syntax.get();
  made_.push_back(std::move(syntax));
  module->syntax->parse_functions();
  if (const auto error = module->syntax->first_error(finder_.interpreter().minor)) {
    raise("SyntaxError", error->message);
    return;
  }
  (void)run_file(module);
}

// What a program that follows in the same process would find changed.
void Interpreter::finish(const std::vector<Ref>& path) {
  for (const auto& [name, module] : sys_modules_->items)
    if (const std::string_view* text = text_of(name)) plan_.loaded.emplace_back(*text);
  std::sort(plan_.loaded.begin(), plan_.loaded.end());
  std::sort(variables_set_.begin(), variables_set_.end());
  plan_.variables_set = std::move(variables_set_);
  Module* sys = as<Module>(loaded_module("sys"), Type::kModule);
  const std::span<const Ref> now = sys_path_->items;
  plan_.changes_imports = !sys || sys->names.get("path") != sys_path_ || dlopen_flags != kRtldNow ||
                          now.size() < path.size() ||
                          !std::equal(path.begin(), path.end(), now.begin());
  if (plan_.changes_imports) return;
  for (Ref added : now.subspan(path.size()))
    if (const std::string_view* text = text_of(added)) plan_.path_added.emplace_back(*text);
}

// A program's own decision, often about arguments that it was not given; not a failure of a module
// that it imports, nor an end because of an import that has failed, with a text or a number.
bool Interpreter::is_own_exit() {
  if (!request_.imports.empty() || !started_) return false;
  if (ended_) return !ended_->in_import;
  const Instance* value = as<Instance>(raised_->value, Type::kInstance);
  const bool tells = value && value->arguments && !value->arguments->items.empty();
  if (!tells || !truth(value->arguments->items[0]).value_or(false)) return true;
  return !raised_->in_import && !raised_->for_import;
}

void Interpreter::conclude() {
  if (const std::string& name = finder_.interpreter().implementation; name != "CPython")
    plan_.problems.push_back(
        name + " has other modules of its own: its imports are followed as those of CPython are");
  if (exhausted())
    plan_.problems.push_back("the program asks for more work on import than the plan may do");
  const Class* import_error = builtin_class("ImportError");
  for (const auto& [error, is_asked] : failed_tasks_)
    if (!is_asked && error.type && import_error && derives_from(error.type, import_error))
      plan_.undecided.push_back(
          {error.file, error.line,
           "whether the failure of a task is asked for: " + text_of_error(error)});
  const std::optional<Raised> end = ended_ ? ended_ : raised_;
  if (!end || exhausted()) return;
  std::string words = ended_ ? end->message : text_of_error(*end);
  if (ends_by_exit() && is_own_exit()) {
    plan_.undecided.push_back({end->file, end->line, "the program ends here: " + words});
    return;
  }
  plan_.failure = std::move(words);
  plan_.failure_cause = end->cause;
  plan_.failure_file = end->file;
  plan_.failure_line = end->line;
  plan_.failure_declared = end->declared;
  plan_.failure_is_exit = ends_by_exit();
  const bool is_missing =
      raised_is("ModuleNotFoundError") || plan_.failure_cause.starts_with("ModuleNotFoundError");
  if (is_missing) plan_.importable = finder_.names_in(finder_.path());
}

// In what is told of errors and open points: a program's own texts may hold what it has set.
void Interpreter::hide_secrets() {
  const std::vector<std::string> values = all_secret_values(secrets_set_);
  if (values.empty()) return;
  const auto hide = [&](std::string& text) { hide_values(text, values); };
  hide(plan_.failure);
  hide(plan_.failure_cause);
  for (std::vector<Undecided>* list : {&plan_.undecided, &plan_.raises})
    for (Undecided& point : *list) hide(point.what);
  for (std::string& problem : plan_.problems) hide(problem);
}

Plan Interpreter::run() {
  auto* scope = make<Scope>();
  auto* nobody = new_module({"", ModuleKind::kBuiltin, "", {}});
  scope->names = &nobody->names;
  scope->module = nobody;
  frames_.push_back({scope, 0, nullptr});
  start_up();
  started_ = !raised_is("SystemExit");
  if (started_) clear_raised();
  if (request_.directory)  // start-up has not seen it
    sys_path_->items.insert(sys_path_->items.begin(), string(*request_.directory));
  const std::vector<Ref> path(sys_path_->items.begin(), sys_path_->items.end());
  if (started_) run_program();
  finish(path);
  conclude();
  hide_secrets();
  frames_.pop_back();
  return std::move(plan_);
}

namespace {

struct Job {
  Finder& finder;
  Images& images;
  const Distributions& distributions;
  NativeLoader& loader;
  const PlanRequest& request;
  PlanCache& cache;
  Plan plan;
};

void* run_job(void* data) {
  Job& job = *static_cast<Job*>(data);
  job.plan =
      Interpreter(job.finder, job.images, job.distributions, job.loader, job.request, job.cache)
          .run();
  return nullptr;
}

}  // namespace

Plan make_plan(Finder& finder, Images& images, const Distributions& distributions,
               NativeLoader& loader, const PlanRequest& request, PlanCache& cache) {
  constexpr size_t kStack = size_t{1} << 30;  // only what is used costs memory
  Job job{finder, images, distributions, loader, request, cache, {}};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStack);
  pthread_t thread{};
  if (pthread_create(&thread, &attributes, run_job, &job) == 0) {
    pthread_join(thread, nullptr);
  } else {
    job.plan.problems.push_back("cannot start a thread for the import plan");
  }
  pthread_attr_destroy(&attributes);
  return std::move(job.plan);
}

}  // namespace cohabit::python
