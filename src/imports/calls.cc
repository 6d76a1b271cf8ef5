// Attributes, calls and classes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include "imports/interpreter.h"
#include "imports/module_name.h"

namespace cohabit::python {
namespace {

constexpr size_t kMostFrames = 60;
constexpr uint64_t kStepsPerCall = 400'000;
constexpr uint8_t kMostDullWork = 60;

// How often a run of the code can yield at most, of what stands in its text: 0, 1, or 2 for more,
// and for any number in a loop.
int count_yields(const Expr* expression) {
  if (!expression || expression->kind == ExprKind::kLambda) return 0;
  int count = expression->kind == ExprKind::kYield       ? 1
              : expression->kind == ExprKind::kYieldFrom ? 2
                                                         : 0;
  for (const Expr* item : expression->items) count += count_yields(item);
  return std::min(count, 2);
}

int count_yields(Block block) {
  int count = 0;
  for (const Stmt* statement : block) {
    if (statement->kind == StmtKind::kFunction || statement->kind == StmtKind::kClass) continue;
    int here = count_yields(statement->body) + count_yields(statement->orelse) +
               count_yields(statement->finally);
    for (const Expr* expression : statement->exprs) here += count_yields(expression);
    for (const Handler& handler : statement->handlers) here += count_yields(handler.body);
    for (const Case& one : statement->cases) here += count_yields(one.body);
    const bool is_loop = statement->kind == StmtKind::kFor || statement->kind == StmtKind::kWhile;
    count += is_loop ? here * 2 : here;
  }
  return std::min(count, 2);
}

// Whether it holds of a class, or of one that it derives from: each is asked once, depth first from
// the left. Bases may branch and meet again at every level.
template <typename Holds>
bool any_class(const Class* type, const Holds& holds) {
  constexpr size_t kMostClasses = 1000;
  size_t count = 0;
  for (; type->bases.size() == 1 && count < kMostClasses; type = type->bases[0], count++)
    if (holds(type)) return true;
  if (type->bases.empty()) return holds(type);
  std::unordered_set<const Class*> seen;
  std::vector<const Class*> waiting = {type};
  while (!waiting.empty() && seen.size() < kMostClasses) {
    const Class* one = waiting.back();
    waiting.pop_back();
    if (!seen.insert(one).second) continue;
    if (holds(one)) return true;
    waiting.insert(waiting.end(), one->bases.rbegin(), one->bases.rend());
  }
  return false;
}

bool derives(const Class* type, const Class* base) {
  return any_class(type, [base](const Class* one) { return one == base; });
}

// The class that an attribute is found in; null: none. Where several bases have it, that of the
// first one, but for a class derived from that.
const Class* owner_of(const Class* type, std::string_view name) {
  const Class* owner = nullptr;
  any_class(type, [&](const Class* one) {
    if (one->names.contains(name) && (!owner || derives(one, owner))) owner = one;
    return false;
  });
  return owner;
}

// The abstract classes that builtin types are registered with, or that ask for methods which they
// have: https://docs.python.org/3/library/collections.abc.html, numbers.html.
struct Abstract {
  std::string_view type;
  std::vector<std::string_view> classes;
};
const std::vector<Abstract>& abstract_classes() {
  static const std::vector<Abstract> kClasses = {
      {"str",
       {"Sequence", "Reversible", "Collection", "Iterable", "Container", "Sized", "Hashable"}},
      {"bytes",
       {"Sequence", "Reversible", "Collection", "Iterable", "Container", "Sized", "Hashable",
        "ByteString", "Buffer"}},
      {"tuple",
       {"Sequence", "Reversible", "Collection", "Iterable", "Container", "Sized", "Hashable"}},
      {"list",
       {"MutableSequence", "Sequence", "Reversible", "Collection", "Iterable", "Container",
        "Sized"}},
      {"dict",
       {"MutableMapping", "Mapping", "Reversible", "Collection", "Iterable", "Container", "Sized"}},
      {"set", {"MutableSet", "Set", "Collection", "Iterable", "Container", "Sized"}},
      {"int", {"Hashable", "Integral", "Rational", "Real", "Complex", "Number"}},
      {"bool", {"Hashable", "Integral", "Rational", "Real", "Complex", "Number"}},
      {"type", {"Hashable", "Callable"}},
  };
  return kClasses;
}

// Nothing: it is no such class, or not known. `type`: the name of a builtin one.
std::optional<bool> is_abstractly(std::string_view type, const Class& wanted) {
  const std::string_view module =
      wanted.module ? std::string_view(wanted.module->spec.name) : std::string_view();
  if (module != "_collections_abc" && module != "collections.abc" && module != "numbers")
    return std::nullopt;
  for (const Abstract& one : abstract_classes())
    if (one.type == type)
      return std::find(one.classes.begin(), one.classes.end(), wanted.name) != one.classes.end();
  return std::nullopt;
}

// What an abstract class has for those that are registered with it.
constexpr std::string_view kRegistered = "_abc_impl";

// Whether objects of other classes than those derived from it may count as its own.
bool takes_others(const Class* type) {
  if (type->names.contains(kRegistered) || type->names.contains("__subclasshook__")) return true;
  return any_class(type, [](const Class* one) {
    if (one->module && one->module->spec.name == "typing" && one->name == "Protocol") return true;
    const auto* meta = as<Class>(one->metaclass, Type::kClass);
    if (!meta || !meta->module || meta->name == "ABCMeta" || meta->name.starts_with("Enum"))
      return false;
    return meta->names.contains("__instancecheck__") || meta->names.contains("__subclasscheck__");
  });
}

// Whether a function is among them, or a method.
bool gives_code(const Arguments& arguments) {
  const auto is_code = [](Ref value) {
    return value->type == Type::kFunction || value->type == Type::kMethod ||
           (value->type == Type::kModel && static_cast<Model*>(value)->self);
  };
  return std::any_of(arguments.positional.begin(), arguments.positional.end(), is_code) ||
         std::any_of(arguments.keywords.begin(), arguments.keywords.end(),
                     [&](const auto& keyword) { return is_code(keyword.second); });
}

// A method that a class derived from ABCMeta's leaves to others; empty: it has none.
std::string_view abstract_method(const Class* type) {
  const bool is_checked = any_class(type, [](const Class* one) {
    const auto* meta = as<Class>(one->metaclass, Type::kClass);
    return meta && meta->name == "ABCMeta";
  });
  std::string_view method;
  const auto leaves_one = [&](const Class* one) {
    for (const auto& [name, value] : one->names) {
      const auto* function = as<Function>(value, Type::kFunction);
      const bool is_left = function && function->attributes.contains("__isabstractmethod__");
      if (!is_left || owner_of(type, name) != one) continue;
      method = name;
      return true;
    }
    return false;
  };
  const bool is_known = is_checked && !any_class(type, [](const Class* one) { return one->open; });
  if (is_known) any_class(type, leaves_one);
  return method;
}

bool is_special(std::string_view name) {
  return name.starts_with("__get") || name == "find_spec" || name == "__init__";
}

}  // namespace

// --- classes

bool Interpreter::is_open(const Class* type) const {
  return any_class(type, [](const Class* one) { return one->open; });
}

// The same, but for types.ModuleType: what that has has names with two underscores.
bool Interpreter::is_open_beside_module(const Class* type) const {
  return any_class(type, [](const Class* one) {
    return one->open && (one->module || one->name != "ModuleType");
  });
}

bool Interpreter::derives_from(const Class* type, const Class* base) const {
  return derives(type, base);
}

bool Interpreter::has_identity(const Class* type) const {
  return !any_class(type, [](const Class* one) {
    if (one->open || one->decorated || one->names.contains("__eq__")) return true;
    return !one->module && one->name != "object" && one->name != "PathFinder";
  });
}

bool Interpreter::is_known(const Instance* instance) const {
  return !instance->open && !instance->items && !instance->target && !is_open(instance->of) &&
         instance->of->module;
}

void Interpreter::add_names_of(const Class* type,
                               std::unordered_set<std::string_view>& names) const {
  any_class(type, [&](const Class* one) {
    for (const auto& [name, value] : one->names) names.insert(name);
    return false;
  });
}

Ref Interpreter::class_attribute(const Class* type, std::string_view name) const {
  for (; type->bases.size() == 1; type = type->bases[0])
    if (Ref found = type->names.get(name)) return found;
  if (Ref found = type->names.get(name)) return found;
  const Class* owner = type->bases.empty() ? nullptr : owner_of(type, name);
  return owner ? owner->names.get(name) : nullptr;
}

// What looking an attribute up on an instance (or, with no self, on the class) makes of it.
Ref Interpreter::bind_method(Ref found, Ref self, Class* type) {
  if (Function* function = as<Function>(found, Type::kFunction)) {
    switch (function->binding) {
      case Function::kStatic:
        return function;
      case Function::kClassMethod:
        return make<Method>(type, function);
      case Function::kProperty: {
        if (!self) return opaque_;
        return call_function(function, Arguments(arena_, {self}));
      }
      case Function::kPlain:
        return self ? static_cast<Ref>(make<Method>(self, function)) : function;
    }
  }
  if (Model* model = as<Model>(found, Type::kModel); model && self)
    return make<Model>(model->name, model->function, self);
  if (Instance* descriptor = as<Instance>(found, Type::kInstance))
    return ask_descriptor(descriptor, self, type);
  return found;
}

// What an object in a class gives by its __get__, or as a property.
Ref Interpreter::ask_descriptor(Instance* descriptor, Ref self, Class* type) {
  Ref method = class_attribute(descriptor->of, "__get__");
  if (method && method->type == Type::kFunction)
    return call(make<Method>(descriptor, method), Arguments(arena_, {self ? self : none_, type}));
  if (method) return opaque_;
  if (!descriptor->of->is_property) return descriptor;
  Ref getter = descriptor->names.get("fget");
  return self && getter ? call(getter, Arguments(arena_, {self})) : opaque_;
}

// The descriptors in a new class learn by what name they are there.
bool Interpreter::tell_names(Class* type) {
  std::vector<std::pair<std::string_view, Ref>> waiting;  // what they do may change the class
  for (const auto& [name, value] : type->names) {
    if (const auto* property = as<Function>(value, Type::kFunction))
      type->has_setters |= property->attributes.contains("fset");
    Instance* descriptor = as<Instance>(value, Type::kInstance);
    if (!descriptor) continue;
    type->has_setters |= own_method(descriptor, "__set__") || descriptor->names.contains("fset");
    if (Ref method = own_method(descriptor, "__set_name__")) waiting.emplace_back(name, method);
  }
  for (const auto& [name, method] : waiting)
    if (!call(method, Arguments(arena_, {type, constant(name)}))) return false;
  return true;
}

bool Interpreter::raised_is(std::string_view builtin) const {
  if (!raised_) return false;
  if (!raised_->type) return true;
  Class* known = as<Class>(builtins_.get(builtin), Type::kClass);
  return known && derives_from(raised_->type, known);
}

std::optional<bool> Interpreter::is_subclass(Class* type, Ref types) {
  if (Class* one = as<Class>(types, Type::kClass)) {
    if (derives_from(type, one)) return true;
    if (!type->module) {
      if (const auto is = is_abstractly(type->name, *one)) return is;
      if (one->module && type->name != "object") return std::nullopt;  // what it derives from
    }
    return is_open(type) || takes_others(one) ? std::nullopt : std::optional(false);
  }
  if (Sequence* several = sequence_of(types)) {
    bool sure = !several->open;
    for (Ref item : several->items) {
      const auto is = is_subclass(type, item);
      if (is && *is) return true;
      sure &= is.has_value();
    }
    return sure ? std::optional(false) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<bool> Interpreter::is_instance(Ref value, Ref types) {
  if (Sequence* several = sequence_of(types)) {
    bool sure = true;
    for (Ref item : several->items) {
      const auto is = is_instance(value, item);
      if (is && *is) return true;
      sure &= is.has_value();
    }
    return sure ? std::optional(false) : std::nullopt;
  }
  Class* type = as<Class>(types, Type::kClass);
  if (!type) return std::nullopt;
  if (Instance* instance = as<Instance>(value, Type::kInstance))
    return is_subclass(instance->of, type);
  if (value->type != Type::kOpaque && is_enumeration(type)) return std::nullopt;
  const auto builtin = [&](std::string_view name) -> std::optional<bool> {
    Class* known = builtin_class(name);
    if (known && derives_from(known, type)) return true;
    if (const auto is = is_abstractly(name, *type)) return is;
    return takes_others(type) ? std::nullopt : std::optional(false);
  };
  switch (value->type) {
    case Type::kOpaque:
      return std::nullopt;
    case Type::kStr:
      return builtin("str");
    case Type::kBytes:
      return builtin("bytes");
    case Type::kBool:
      return builtin("bool");
    case Type::kInt:
      return builtin("int");
    case Type::kTuple:
      return builtin("tuple");
    case Type::kList:
      return builtin("list");
    case Type::kSet:
      return builtin("set");
    case Type::kDict:
      return builtin("dict");
    case Type::kNone:
      return type->name == "NoneType" || type->name == "object";
    case Type::kClass: {
      const auto names_it = [type](const Class* one) {
        const auto* meta = as<Class>(one->metaclass, Type::kClass);
        return meta && derives(meta, type);
      };
      if (any_class(static_cast<Class*>(value), names_it)) return true;
      if (!type->module && (type->name == "type" || type->name == "object")) return true;
      // No metaclass can be made of one of these. What `list[int]` gives is known as the class.
      if (!type->module && builtin_class(type->name) == type) {
        const auto* known = static_cast<Class*>(value);
        const bool is_generic = !known->module || class_attribute(known, "__class_getitem__");
        return type->name == "GenericAlias" && is_generic ? std::nullopt : std::optional(false);
      }
      const Class* meta = known_metaclass(static_cast<Class*>(value));
      if (!meta) return std::nullopt;
      if (!meta->module) return builtin("type");
      return takes_others(type) || is_abstractly("type", *type) ? std::nullopt
                                                                : std::optional(false);
    }
    case Type::kModule:
      return type->name == "ModuleType" || type->name == "object";
    default:
      return std::nullopt;
  }
}

bool Interpreter::waits_for(std::string_view error, bool to_go_on) const {
  Class* type = as<Class>(builtins_.get(error), Type::kClass);
  const bool is_exit =
      error == "SystemExit" || error == "KeyboardInterrupt" || error == "GeneratorExit";
  Class* import_error_class = as<Class>(builtins_.get("ImportError"), Type::kClass);
  const bool import_error = type && import_error_class && derives_from(type, import_error_class);
  for (const Expected& expected : catching_) {
    if (expected.here && expected.module_depth != module_depth_) continue;
    const auto& passed_on = expected.passed_on;
    for (const std::string_view name : expected.errors) {
      if (is_exit && name == "Exception") continue;
      if (to_go_on && std::find(passed_on.begin(), passed_on.end(), name) != passed_on.end())
        continue;
      const bool all = name.empty() || name == "Exception" || name == "BaseException";
      if (all && expected.module_depth == module_depth_) return true;
      if (all) continue;
      // Whoever imports a module means what that one does, not all that it imports in turn.
      if (!import_error && expected.module_depth + 1 < module_depth_) continue;
      if (name == error) return true;
      Class* known = as<Class>(builtins_.get(name), Type::kClass);
      if (type && known && derives_from(type, known)) return true;
    }
  }
  return false;
}

// --- attributes

// What a module has before its __getattr__ is asked, by its class or by its import.
static bool is_of_every_module(std::string_view name) {
  static constexpr std::array<std::string_view, 34> kNames = {
      "__annotations__", "__builtins__",     "__cached__",        "__class__",
      "__delattr__",     "__dict__",         "__dir__",           "__doc__",
      "__eq__",          "__file__",         "__format__",        "__ge__",
      "__getattr__",     "__getattribute__", "__getstate__",      "__gt__",
      "__hash__",        "__init__",         "__init_subclass__", "__le__",
      "__loader__",      "__lt__",           "__name__",          "__ne__",
      "__new__",         "__package__",      "__reduce__",        "__reduce_ex__",
      "__repr__",        "__setattr__",      "__sizeof__",        "__spec__",
      "__str__",         "__subclasshook__"};
  static_assert(std::is_sorted(kNames.begin(), kNames.end()));
  return std::binary_search(kNames.begin(), kNames.end(), name);
}

Ref Interpreter::module_attribute(Module* module, std::string_view name, bool* raised) {
  if (Ref found = module->names.get(name)) return found;
  if (name == "__dict__") return variables_of(module);
  Ref hook = is_of_every_module(name) ? nullptr : module->names.get("__getattr__");
  if (hook) {
    const uint64_t guesses = guesses_;
    const Catching catching(*this, {"AttributeError"}, true);
    Ref value = call(hook, Arguments(arena_, {string(name)}));
    if (value && value->type != Type::kOpaque && value->type != Type::kNone) {
      module->names[keep(name)] = value;
      return value;
    }
    if (value) return value;
    if (!raised_is("AttributeError")) {
      *raised = true;
      return nullptr;
    }
    const std::pair<std::string, uint32_t> place(raised_->file, raised_->line);
    const bool in_doubt = raised_->doubted;
    clear_raised();
    const auto usual = in_doubt ? place : place_of_refusal(hook);
    if (usual.second > 0 && usual != place) {
      module->refused.push_back(keep(name));
      return nullptr;
    }
    // It may serve the name, if that is not one of a file (`from unittest import mock`).
    const std::string full = fmt::format("{}.{}", module->spec.name, name);
    if (guesses_ != guesses && !finder_.find(full, search_of(module, module->spec.name)))
      return opaque_;
  }
  return nullptr;
}

Ref Interpreter::instance_attribute(Instance* object, std::string_view name, bool* raised) {
  if (object->target) {
    Ref value = class_attribute(object->of, name);
    if (!value && name == "__new__") {
      const ModelRow* model = find_model("object.__new__");
      return make<Model>(model->name, model->function);
    }
    Ref bound = value ? bind_method(value, object->target, object->target->of) : nullptr;
    *raised = value && !bound;
    return bound;
  }
  if (Ref found = object->names.get(name)) return found;
  if (name == "__class__") return object->of;
  if (Ref value = class_attribute(object->of, name)) {
    if (object->unseen && is_data(value) && !name.starts_with("__")) return opaque_;
    Ref bound = bind_method(value, object, object->of);
    // What a property raises so is asked of the class's own __getattr__.
    if (!bound && raised_is("AttributeError") && class_attribute(object->of, "__getattr__")) {
      clear_raised();
      return opaque_;
    }
    *raised = !bound;
    return bound;
  }
  if (object->text)
    if (Ref method = builtin_method(object->text, name)) return method;
  if (Ref hook = class_attribute(object->of, "__getattr__"); hook && !name.starts_with("__")) {
    const uint64_t guesses = guesses_;
    const Catching catching(*this, {"AttributeError"}, true);
    Ref value = call(bind_method(hook, object, object->of), Arguments(arena_, {string(name)}));
    if (value) return value;
    if (!raised_is("AttributeError")) {
      *raised = true;
      return nullptr;
    }
    const bool is_sure = !raised_->doubted && guesses_ == guesses && !object->open;
    *raised = is_sure && raised_->certain;
    if (*raised) return nullptr;
    clear_raised();
    return is_sure ? nullptr : opaque_;
  }
  if (name == "__dict__") {
    auto* dict = make<Dict>();
    for (const auto& [key, value] : object->names) dict_set(dict, key, value);
    dict->open = !is_known(object);
    dict->attributes_of = object;
    return dict;
  }
  if (object->items) return builtin_method(object->items, name);
  return object->text ? opaque_ : nullptr;  // a method of str that has no model
}

Ref Interpreter::builtin_method(Ref object, std::string_view name) {
  static constexpr std::pair<Type, std::string_view> kTypes[] = {
      {Type::kIterator, "generator"}, {Type::kStr, "str"},   {Type::kBytes, "bytes"},
      {Type::kTuple, "tuple"},        {Type::kList, "list"}, {Type::kSet, "set"},
      {Type::kDict, "dict"},          {Type::kPath, "Path"}, {Type::kVersion, "Version"}};
  for (const auto& [type, prefix] : kTypes)
    if (object->type == type) return method_of(prefix, name, object);
  return nullptr;
}

// A model that is a method, or the value of one that is a property.
Ref Interpreter::method_of(std::string_view type, std::string_view name, Ref object) {
  const ModelRow* model = find_model(type, name);
  if (!model) return nullptr;
  if (model->name.ends_with("()")) return model->function(*this, object, {});
  return make<Model>(model->name, model->function, object);
}

Ref Interpreter::find_attribute(Ref object, std::string_view name, bool* raised) {
  *raised = false;
  switch (object->type) {
    case Type::kModule: {
      auto* module = static_cast<Module*>(object);
      Ref value = module_attribute(module, name, raised);
      if (name == "__version__" && !*raised && (!value || value->type == Type::kOpaque))
        if (Ref version = installed_version(*module)) return version;
      if (value || *raised || !may_have(*module, name, "AttributeError")) return value;
      return opaque(module->spec.name, name);
    }
    case Type::kInstance: {
      auto* instance = static_cast<Instance*>(object);
      Ref value = instance_attribute(instance, name, raised);
      if (value || *raised) return value;
      if (!instance->of->module)
        if (Ref method = method_of(instance->of->name, name, instance)) return method;
      if (instance->of->is_property)
        if (Ref method = method_of("property", name, instance)) return method;
      const bool asks = class_attribute(instance->of, "__getattribute__") != nullptr;
      // A module class's __getattr__ has refused it, and what is open of the class is ModuleType.
      if (!asks && !name.starts_with("__") && class_attribute(instance->of, "__getattr__") &&
          !is_open_beside_module(instance->of))
        return nullptr;
      return instance->open || asks || is_open(instance->of) ? opaque_ : nullptr;
    }
    case Type::kClass: {
      auto* type = static_cast<Class*>(object);
      if (Ref value = class_attribute(type, name)) {
        Ref bound = bind_method(value, nullptr, type);
        *raised = !bound;
        return bound;
      }
      if (name == "__name__" || name == "__qualname__")
        return constant(type == builtin_class("ModuleType") ? "module" : type->name);
      if (name == "__module__" && type->module) return constant(type->module->spec.name);
      if (name == "__mro__" || name == "__bases__") {
        Sequence* result = list({}, Type::kTuple);
        result->items.assign(type->bases.begin(), type->bases.end());
        result->open = true;
        return result;
      }
      if (!type->module)
        if (const ModelRow* model = find_model(type->name, name);
            model && !model->name.ends_with("()"))
          return make<Model>(model->name, model->function);
      if (name == "register") type->names[kRegistered] = opaque_;
      return opaque_;
    }
    case Type::kFunction: {
      auto* function = static_cast<Function*>(object);
      if (Ref found = function->attributes.get(name)) return found;
      if (name == "__name__" || name == "__qualname__") return constant(function->name);
      if (name == "__module__") return constant(function->module->spec.name);
      if (function->binding == Function::kProperty)
        if (Ref method = method_of("property", name, function)) return method;
      if (name.starts_with("__")) return opaque_;
      return function->binding == Function::kPlain ? nullptr : opaque_;
    }
    case Type::kMethod:
      if (name == "__self__") return static_cast<Method*>(object)->self;
      if (name == "__func__") return static_cast<Method*>(object)->function;
      return find_attribute(static_cast<Method*>(object)->function, name, raised);
    case Type::kOpaque: {
      const std::string_view dotted = static_cast<Opaque*>(object)->name;
      return dotted.empty() ? opaque_ : opaque(dotted, name);
    }
    case Type::kModel: {
      const ModelRow* model = find_model(static_cast<Model*>(object)->name, name);
      if (model && !model->name.ends_with("()")) return make<Model>(model->name, model->function);
      return opaque_;
    }
    default: {
      if (Ref method = builtin_method(object, name)) return method;
      if (object->type == Type::kNone && !object->doubted && !name.starts_with("__"))
        return nullptr;
      return opaque_;
    }
  }
}

Ref Interpreter::attribute(Ref object, std::string_view name) {
  bool raised = false;
  Ref value = find_attribute(object, name, &raised);
  if (value && value->lacking) {
    const Module* owner = as<Module>(object, Type::kModule);
    return owner && !owner->open ? value : plainly(value);
  }
  if (value || raised) return value;
  Module* of_module = as<Module>(object, Type::kModule);
  // What a module's __getattr__ says of such names is not asked.
  if (name.starts_with("__") &&
      (!of_module || is_of_any_module(name) || of_module->names.contains("__getattr__")))
    return opaque_;
  if (!expects("AttributeError")) {
    if (object->lacking && object->type == Type::kNone)
      return raise_lacking(object, "AttributeError",
                           fmt::format("'NoneType' object has no attribute '{}'", name));
    if (!of_module || !is_surely_without(*of_module, name)) return opaque_;
    return raise_certain("AttributeError", fmt::format("module '{}' has no attribute '{}'",
                                                       of_module->spec.name, name));
  }
  if (of_module) {
    // A gap in what we know is likelier than a program that fails here, unless it expects to.
    const std::string full = fmt::format("{}.{}", of_module->spec.name, name);
    if (Ref submodule = loaded_module(full)) return submodule;
    return raise("AttributeError",
                 fmt::format("module '{}' has no attribute '{}'", of_module->spec.name, name));
  }
  if (Instance* instance = as<Instance>(object, Type::kInstance))
    return raise("AttributeError",
                 fmt::format("'{}' object has no attribute '{}'", instance->of->name, name));
  return raise("AttributeError", std::string(name));
}

// What takes a value for what stands in a class: the setter of a property, the __set__ of another
// descriptor.
Ref Interpreter::setter_of(Ref place) {
  if (auto* property = as<Function>(place, Type::kFunction))
    return property->attributes.get("fset");
  if (Ref method = own_method(place, "__set__")) return method;
  auto* property = as<Instance>(place, Type::kInstance);
  return property && property->of->is_property ? property->names.get("fset") : nullptr;
}

// Whether an attribute cannot be set: of values of the language, a property without a setter, a
// frozen data class, a name that `__slots__` does not have.
bool Interpreter::refuses_attribute(Ref object, std::string_view name) {
  constexpr Type kWithout[] = {Type::kNone, Type::kBool,  Type::kInt,
                               Type::kStr,  Type::kBytes, Type::kTuple};
  if (!object->lacking &&
      std::find(std::begin(kWithout), std::end(kWithout), object->type) != std::end(kWithout))
    return true;
  auto* instance = as<Instance>(object, Type::kInstance);
  if (!instance || !is_own_code(instance->of->module)) return false;
  const Class* type = instance->of;
  if (type->fields && type->fields->is_frozen) return true;
  if (instance->open || instance->unseen || type->open || type->decorated ||
      as<Function>(class_attribute(type, "__setattr__"), Type::kFunction))
    return false;
  Ref place = class_attribute(type, name);
  if (const auto* property = as<Function>(place, Type::kFunction);
      property && property->binding == Function::kProperty)
    return !property->attributes.contains("fset");
  if (place) return false;
  for (;; type = type->bases[0]) {
    if (type->metaclass || !is_own_code(type->module)) return false;
    const Sequence* slots = sequence_of(type->names.get("__slots__"));
    if (!slots || slots->open || slots->partial) return false;
    for (Ref slot : slots->items) {
      const std::string_view* text = text_of(slot);
      if (!text || *text == name || *text == "__dict__") return false;
    }
    if (type->bases.empty() || (type->bases[0]->name == "object" && !type->bases[0]->module))
      return true;
    if (type->bases.size() > 1) return false;
  }
}

bool Interpreter::set_attribute(Ref object, std::string_view name, Ref value) {
  // Code that is not the program's own may look there.
  const auto is_foreign = [this](Ref place) {
    const Module* module = nullptr;
    if (place->type == Type::kModule) module = static_cast<Module*>(place);
    if (place->type == Type::kClass) module = static_cast<Class*>(place)->module;
    if (place->type == Type::kInstance) module = static_cast<Instance*>(place)->of->module;
    return module && (module->spec.path.empty() || !is_own_code(module));
  };
  if (expects("AttributeError") && refuses_attribute(object, name)) {
    raise("AttributeError", fmt::format("cannot set attribute '{}'", name));
    return false;
  }
  Namespace* names = nullptr;
  switch (object->type) {
    case Type::kModule:
      names = &static_cast<Module*>(object)->names;
      break;
    case Type::kInstance: {
      auto* instance = static_cast<Instance*>(object);
      Ref place = instance->of->has_setters ? class_attribute(instance->of, name) : nullptr;
      if (Ref setter = place ? setter_of(place) : nullptr)
        return call(setter, Arguments(arena_, {object, value})) != nullptr;
      if (has_own_code_ && is_own_code(instance->of->module) &&
          as<Function>(class_attribute(instance->of, "__setattr__"), Type::kFunction)) {
        value = opaque_;  // it decides what the attribute is
        instance->open = true;
      }
      names = &instance->names;
      break;
    }
    case Type::kClass:
      names = &static_cast<Class*>(object)->names;
      break;
    case Type::kFunction:
      names = &static_cast<Function*>(object)->attributes;
      break;
    default:
      effects_++;
      let_out(value);
      return true;
  }
  // A hook, or what print() writes to.
  if (has_own_code_ && is_foreign(object) && is_own_code(current_module())) let_out(value);
  Ref& place = (*names)[name];
  if (place != value) effects_++;
  place = value;
  return true;
}

// --- calls

Ref Interpreter::call(Ref callee, const Arguments& arguments) {
  // An object may be its own __call__.
  constexpr int kMostCalls = 400;
  struct Level {
    explicit Level(int& count) : count_(count) { count_++; }
    ~Level() { count_--; }
    Level(const Level&) = delete;
    int& count_;
  };
  const Level level(calls_deep_);
  if (calls_deep_ > kMostCalls) {
    guesses_++;
    return opaque_;
  }
  switch (callee->type) {
    case Type::kFunction:
      return call_function(static_cast<Function*>(callee), arguments);
    case Type::kMethod: {
      auto* method = static_cast<Method*>(callee);
      const CallArguments with_self(*this);
      Arguments& all = *with_self;
      all.positional.push_back(method->self);
      all.add(arguments);
      return call(method->function, all);
    }
    case Type::kModel: {
      return call_model(*static_cast<Model*>(callee), arguments);
    }
    case Type::kClass:
      return instantiate(static_cast<Class*>(callee), arguments);
    case Type::kInstance: {
      auto* instance = static_cast<Instance*>(callee);
      if (Ref method = class_attribute(instance->of, "__call__"))
        return call(bind_method(method, instance, instance->of), arguments);
      if (!instance->of->module)
        if (Ref method = method_of(instance->of->name, "__call__", instance))
          return call(method, arguments);
      return opaque_;
    }
    case Type::kOpaque:
      return call_opaque(static_cast<Opaque*>(callee), arguments);
    default:
      if (!callee->lacking) return opaque_;
      return raise_lacking(
          callee, "TypeError",
          fmt::format("'{}' object is not callable", callee->type == Type::kNone   ? "NoneType"
                                                     : callee->type == Type::kBool ? "bool"
                                                                                   : "int"));
  }
}

Ref Interpreter::call_model(const Model& model, const Arguments& arguments) {
  Ref result = unless_generator_raised(model.function(*this, model.self, arguments));
  const bool doubted = (model.self && model.self->doubted) ||
                       std::any_of(arguments.positional.begin(), arguments.positional.end(),
                                   [](Ref argument) { return argument->doubted; });
  if (result && result->type == Type::kOpaque) {
    let_out_code(arguments);
    if (model.self && model.self->type == Type::kInstance) let_out(model.self);
  }
  if (result && model.self) result = plainly(result);  // an item of what is called
  if (!result || !doubted) return result;
  // A match of a regular expression, made of the text.
  if (auto* match = as<Instance>(result, Type::kInstance); match && match->of->name == "Match")
    match->doubted = true;
  return doubt(result);
}

// A model that went over a generator which raised has told it that it knows no items.
Ref Interpreter::unless_generator_raised(Ref result) {
  return std::exchange(generator_raised_, false) ? nullptr : result;
}

// What is given to code that is not followed: it may put names into a module whose variables these
// are.
void Interpreter::hand_over(const Arguments& arguments) {
  const auto give = [](Ref value) {
    if (Dict* dict = as<Dict>(value, Type::kDict); dict && dict->variables_of) dict->open_all();
  };
  for (Ref value : arguments.positional) give(value);
  for (const auto& [name, value] : arguments.keywords) give(value);
  let_out(arguments);
}

Ref Interpreter::call_opaque(Opaque* callee, const Arguments& arguments) {
  guesses_++;
  hand_over(arguments);
  if (!given_.empty() && is_own_code(current_module())) let_out_given();
  if (callee->name.empty()) return opaque_;
  const ModelRow* model = find_model(callee->name);
  return model ? unless_generator_raised(model->function(*this, callee, arguments)) : opaque_;
}

bool Interpreter::bind_parameters(Function* function, const Arguments& arguments, Scope* scope) {
  size_t position = 0;
  std::vector<bool> used(arguments.keywords.size());
  for (size_t i = 0; i < function->parameters.size(); i++) {
    const Parameter& parameter = function->parameters[i];
    Ref value = nullptr;
    if (parameter.kind == Parameter::kVarArgs) {
      auto* rest = make<Sequence>(Type::kTuple);
      for (; position < arguments.positional.size(); position++)
        rest->items.push_back(arguments.positional[position]);
      rest->open = arguments.open;
      value = rest;
    } else if (parameter.kind == Parameter::kVarKeywords) {
      auto* rest = make<Dict>();
      for (size_t k = 0; k < arguments.keywords.size(); k++)
        if (!used[k]) dict_set(rest, arguments.keywords[k].first, arguments.keywords[k].second);
      rest->open = arguments.open;
      value = rest;
    } else {
      if (parameter.kind == Parameter::kPositional && position < arguments.positional.size())
        value = arguments.positional[position++];
      for (size_t k = 0; k < arguments.keywords.size() && !value; k++)
        if (arguments.keywords[k].first == parameter.name) {
          value = arguments.keywords[k].second;
          used[k] = true;
        }
      if (!value && arguments.open) value = opaque_;
      if (!value) value = function->defaults[i];
      if (!value) value = opaque_;
    }
    if (!parameter.name.empty()) (*scope->names)[parameter.name] = value;
  }
  return takes_keywords(*function, arguments, used);
}

// Whether a function of the standard library knows all that it is told by name:
// `dataclass(slots=True)` is an error before Python 3.10. Of other functions it is likelier that
// the one that is called is not the one that is known here.
bool Interpreter::takes_keywords(const Function& function, const Arguments& arguments,
                                 const std::vector<bool>& used) {
  const auto left = std::find(used.begin(), used.end(), false);
  const bool is_open =
      std::any_of(function.parameters.begin(), function.parameters.end(),
                  [](const Parameter& one) { return one.kind == Parameter::kVarKeywords; });
  if (left == used.end() || is_open || function.guessed || !is_standard(function.module) ||
      frames_.back().doubt.any() || function.doubted)
    return true;
  const std::string owner = function.owner && finder_.interpreter().minor >= 10
                                ? fmt::format("{}.", function.owner->name)
                                : "";
  raise_certain("TypeError",
                fmt::format("{}{}() got an unexpected keyword argument '{}'", owner, function.name,
                            arguments.keywords[static_cast<size_t>(left - used.begin())].first));
  return false;
}

// A function that did nothing and told nothing a few times, or often where that is little work, is
// not run again: registering decorators are called thousands of times. What a finder of modules
// calls tells by None as well, that there is none.
Ref Interpreter::call_function(Function* function, const Arguments& arguments) {
  const bool is_dull = function->dull_work >= kMostDullWork && asked_finders_.empty();
  if (is_dull || frames_.size() > kMostFrames || exhausted()) {
    guesses_++;
    hand_over(arguments);
    let_out(function);
    return opaque_;
  }
  constexpr uint64_t kLittle = 4;  // statements
  const uint64_t effects = effects_, steps = steps_, guesses = guesses_;
  Ref result = run_function(function, arguments);
  if (function->dull_work >= kMostDullWork) return result;  // it was not run to its end
  const bool is_generator = result && result->type == Type::kIterator;
  const bool is_followed = guesses_ == guesses && !is_generator;
  if (has_own_code_ && (gives_code(arguments) || (!is_followed && !given_.empty())))
    note_given(*function, arguments, is_followed);
  const bool told = !result || (result->type != Type::kOpaque && result->type != Type::kNone) ||
                    (result->type == Type::kNone && !asked_finders_.empty());
  if (told || effects_ != effects || is_special(function->name)) {
    function->dull_work = 0;
  } else if (steps_ - steps > 1) {  // one statement is no more work than this
    const int work = steps_ - steps > kLittle ? kMostDullWork / 3 : 1;
    function->dull_work = static_cast<uint8_t>(std::min(function->dull_work + work, 255));
  }
  return result;
}

Interpreter::RunningScope::RunningScope(Interpreter& in) : in_(in) {
  if (in.spare_scopes_.empty()) {
    scope_ = in.make<Scope>();
    return;
  }
  scope_ = in.spare_scopes_.back();
  in.spare_scopes_.pop_back();
}

Interpreter::RunningScope::~RunningScope() {
  if (scope_->captured) return;
  scope_->clear();
  in_.spare_scopes_.push_back(scope_);
}

Scope* Interpreter::capture(Scope* current) {
  Scope* around = current->defining || current->is_module() ? current->outer : current;
  for (Scope* scope = around; scope && !scope->captured; scope = scope->outer)
    scope->captured = true;
  return around;
}

Interpreter::CallArguments::CallArguments(Interpreter& in)
    : in_(in),
      arguments_(in.calls_ < in.call_arguments_.size()
                     ? in.call_arguments_[in.calls_]
                     : in.call_arguments_.emplace_back(in.arena_)) {
  in.calls_++;
}

Interpreter::CallArguments::~CallArguments() {
  arguments_.positional.clear();
  arguments_.keywords.clear();
  arguments_.open = false;
  in_.calls_--;
}

Instance* Interpreter::call_for_later(std::string_view type, Ref callee, const Arguments& arguments,
                                      size_t left_out) {
  Instance* call = instance_of(type);
  auto* keywords = make<Dict>();
  for (const auto& [name, value] : arguments.keywords) dict_set(keywords, name, value);
  Sequence* positional =
      list(std::span<const Ref>(arguments.positional).subspan(left_out), Type::kTuple);
  positional->open = arguments.open;
  call->names["func"] = callee;
  call->names["args"] = positional;
  call->names["keywords"] = keywords;
  return call;
}

Arguments Interpreter::unpacked(Ref positional, Ref keywords) {
  Arguments result(arena_);
  const auto items = positional ? elements(positional) : std::nullopt;
  result.open = (positional && !items) || holds_more(positional);
  for (Ref item : items.value_or(std::span<const Ref>())) result.positional.push_back(item);
  if (const auto* dict = as<Dict>(keywords, Type::kDict))
    for (const auto& [key, value] : dict->items)
      if (const std::string_view* name = text_of(key)) result.keywords.emplace_back(*name, value);
  return result;
}

// A program may have put anything in the place of what stands in it.
Ref Interpreter::await(Instance* value) {
  if (value->of == builtin_class("Future")) {
    if (raises_for(value)) return nullptr;
    Ref result = value->names.get("result");
    return result ? result : opaque_;
  }
  auto* function = as<Function>(value->names.get("func"), Type::kFunction);
  const bool is_coroutine = value->of == builtin_class("coroutine");
  if (!is_coroutine || !function || frames_.size() > kMostFrames || exhausted()) {
    guesses_++;
    return opaque_;
  }
  const Arguments arguments = unpacked(value->names.get("args"), value->names.get("keywords"));
  return run_function(function, arguments, nullptr, true);
}

Instance* Interpreter::failed_task() {
  if (!raised_ || ended_ || raised_->left || raised_is("SystemExit")) return nullptr;
  Instance* task = instance_of("Future");
  failed_task_at_[task] = failed_tasks_.size();
  failed_tasks_.push_back({std::move(*raised_), false});
  raised_.reset();
  return task;
}

bool Interpreter::raises_for(const Instance* task) {
  const auto at = failed_task_at_.find(task);
  if (at == failed_task_at_.end()) return false;
  failed_tasks_[at->second].is_asked = true;
  raised_ = failed_tasks_[at->second].error;
  return true;
}

Ref Interpreter::run_function(Function* function, const Arguments& arguments, Consumer* consumer,
                              bool is_awaited) {
  Block body;
  if (function->statement) {
    body = function->syntax ? function->syntax->body_of(*function->statement) : Block();
    if (!function->checked) {
      function->checked = true;
      const int count = count_yields(body);
      function->is_generator = count > 0;
      function->yields_once = count == 1;
    }
    if (function->statement->is_async && !is_awaited) {
      if (!function->is_generator) return call_for_later("coroutine", function, arguments);
      if (!is_own_code(function->module)) return opaque_;
    }
    if (function->is_generator && !consumer) return make<Iterator>(function, arguments);
  }
  const RunningScope scope(*this);
  scope->module = function->module;
  scope->outer = function->outer;
  scope->owner = function->owner;
  if (!bind_parameters(function, arguments, scope.get())) return nullptr;
  if (!arguments.positional.empty()) scope->self = arguments.positional[0];
  // What the program's own code calls has a budget for itself: its end is not that of the caller.
  const uint64_t limit = step_limit_, before = steps_;
  const bool has_budget = limit == 0 || is_own_code(current_module());
  if (has_budget) step_limit_ = steps_ + kStepsPerCall;
  frames_.push_back(
      {scope.get(), function->statement ? function->statement->line : 0, nullptr, false, consumer});
  Ref result = none_;
  if (function->lambda) {
    result = evaluate(*function->lambda->items[0]);
  } else {
    const Flow flow = execute(body);
    if (flow == Flow::kReturn) result = frames_.back().returned;
    if (flow == Flow::kRaise) result = nullptr;
    if (result && frames_.back().may_return) result = returned_for_nothing(result);
  }
  returned_in_doubt_ = frames_.back().doubt.returned;
  if (result && returned_in_doubt_) result = doubt(result);
  const bool may_have_raised = frames_.back().doubt.raised;
  leave_frame();
  if (!frames_.empty()) frames_.back().doubt.raised |= may_have_raised;
  if (has_budget) {
    const bool is_over = raised_ && raised_->left && raised_is("RecursionError");
    if (is_over || steps_ > step_limit_) {  // not an error of the program: ours
      guesses_++;
      clear_raised();
      hand_over(arguments);
      let_out(function);
      for (Module* module : {function->module, current_module()})
        if (module) module->open = true;  // it has names that were not come to
      function->dull_work = kMostDullWork;
      if (function->module && is_own_code(function->module))
        undecided(
            fmt::format("what {}() does behind its first {} steps", function->name, kStepsPerCall))
            .may_fail = true;
      result = opaque_;
    }
    step_limit_ = limit == 0 ? 0 : limit + (steps_ - before);
  }
  return result;
}

// None, or a container that is empty, where a branch that was skipped may have returned a value.
Ref Interpreter::returned_for_nothing(Ref result) {
  if (result->type == Type::kNone) return result == none_ ? opaque_ : result;
  Sequence* items = sequence_of(result);
  if (items && items->type == Type::kTuple && items->items.empty()) {
    Sequence* other = list({}, Type::kTuple);
    other->open = true;
    return other;
  }
  if (is_own_code(current_module())) open_if_empty(result);
  return result;
}

// A __new__ that starts with a call, which may refuse, as those of protobuf's descriptors do. What
// others make is not followed: __init__ says what is in the object.
bool asks_first(const Function* maker) {
  if (!maker || !maker->statement || !maker->syntax) return false;
  const Block body = maker->syntax->body_of(*maker->statement);
  return !body.empty() && body[0]->kind == StmtKind::kExpression &&
         body[0]->exprs[0]->kind == ExprKind::kCall;
}

// What an instance of a subclass of str is as a text; null: it is none.
Str* Interpreter::text_of_instance(Class* type, const Arguments& arguments) {
  const Class* text = builtin_class("str");
  if (!text || !derives_from(type, text) || arguments.open) return nullptr;
  return as<Str>(find_model("str.__new__")->function(*this, type, arguments), Type::kStr);
}

Ref Interpreter::plain_text(Ref value, std::initializer_list<std::string_view> methods) const {
  const auto* instance = as<Instance>(value, Type::kInstance);
  if (!instance || !instance->text) return value;
  const bool is_own = std::any_of(methods.begin(), methods.end(), [&](std::string_view name) {
    return class_attribute(instance->of, name) != nullptr;
  });
  return is_own ? value : instance->text;
}

Ref Interpreter::instantiate(Class* type, const Arguments& arguments) {
  bool done = false;
  Ref builtin = construct_builtin(type, arguments, &done);
  if (done) return builtin;
  if (is_enumeration(type)) {  // the member of that value
    // Those of a library are no objects that stand in their class.
    const Sequence* members = is_own_code(type->module) ? members_of(type) : nullptr;
    Ref wanted = arguments.positional.size() == 1 && !arguments.open ? arguments.get(0) : nullptr;
    for (size_t i = 0; members && wanted && i < members->items.size(); i++) {
      Ref member = members->items[i];
      const Namespace& names = static_cast<Instance*>(member)->names;
      if (member == wanted) return member;
      const std::string_view* name = text_of(names.get("name"));
      Ref value = names.get("value");
      const auto same = name && value ? equal(value, wanted) : std::nullopt;
      if (same == std::optional(true) && type->names.get(*name) == member) return member;
      if (!same) return opaque_;
    }
    const Class* asked = owner_of(type, "_missing_");
    const bool is_plain = !asked || !asked->module || !is_own_code(asked->module);
    const bool is_all = members && wanted && wanted->type == Type::kStr && !members->open;
    if (is_all && is_plain && expects("ValueError"))
      return raise("ValueError",
                   fmt::format("'{}' is not a valid {}", *text_of(wanted), type->name));
    return opaque_;
  }
  const bool is_own = has_own_code_ && is_own_code(type->module);
  if (const Class* meta = is_own ? known_metaclass(type) : nullptr; meta && meta->module)
    if (auto* function = as<Function>(class_attribute(meta, "__call__"), Type::kFunction)) {
      Arguments all(arena_, {type});
      all.add(arguments);
      return call(function, all);
    }
  if (is_own && expects("TypeError"))
    if (const std::string_view method = abstract_method(type); !method.empty())
      return raise("TypeError", fmt::format("Can't instantiate abstract class {} without an "
                                            "implementation for abstract method '{}'",
                                            type->name, method));
  Ref maker = class_attribute(type, "__new__");
  Instance* instance = nullptr;
  const auto* made_by = as<Function>(maker, Type::kFunction);
  if (is_own ? made_by != nullptr : asks_first(made_by)) {
    Arguments all(arena_, {type});
    all.add(arguments);
    Ref made = call(maker, all);
    if (!made) return nullptr;
    if (is_own) {
      instance = as<Instance>(made, Type::kInstance);
      if (instance && !derives_from(instance->of, type)) instance = nullptr;
      if (!instance && made->type != Type::kOpaque) return made;
    }
  }
  const bool is_made = instance;
  if (!instance) instance = make<Instance>(type);
  instance->arguments = list(arguments.positional, Type::kTuple);
  if (Class* dict = builtin_class("dict"); dict && derives_from(type, dict) && !instance->items) {
    instance->items = make<Dict>();
    if (!class_attribute(type, "__init__"))
      find_model("dict.update")->function(*this, instance->items, arguments);
  }
  if (type == builtin_class("namespace"))
    for (const auto& [name, value] : arguments.keywords) instance->names[keep(name)] = value;
  if (!maker) instance->text = text_of_instance(type, arguments);
  if (type->is_property && arguments.get(0, "fget"))
    instance->names["fget"] = arguments.get(0, "fget");
  if (Ref init = class_attribute(type, "__init__")) {
    instance->unseen = init->type == Type::kOpaque || init->type == Type::kNone;
    if (!call(bind_method(init, instance, type), arguments)) return nullptr;
  } else if (is_open(type)) {
    instance->open = true;
  }
  if (maker && !is_made) instance->open = true;
  if (has_own_code_) let_out_special(instance);
  return instance;
}

// Classes without a module of their own are those of builtins.
Ref Interpreter::construct_builtin(Class* type, const Arguments& arguments, bool* done) {
  if (type->module) return nullptr;
  const ModelRow* model = find_model(type->name, "__new__");
  if (!model) return nullptr;
  *done = true;
  Ref result = unless_generator_raised(model->function(*this, type, arguments));
  if (result && result->type == Type::kOpaque) let_out_code(arguments);
  return result;
}

}  // namespace cohabit::python
