// What a class certainly does not take: `list[int]` before Python 3.9, `int | None` before 3.10,
// `"Later" | None` before 3.14, where an annotation or an alias of a type asks for it.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "imports/interpreter.h"

namespace cohabit::python {
namespace {

bool is_any_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Types of the interpreter of which all is known that is asked here.
bool is_plain_builtin(const Class& type) {
  return is_any_of(type.name, {"object", "str", "bytes", "int", "bool", "float", "complex"});
}
// As of Python 3.9 they take what their items are.
constexpr std::string_view kGenericBuiltins[] = {"list", "tuple",     "set",
                                                 "dict", "frozenset", "type"};
bool is_generic_builtin(const Class& type) {
  return std::find(std::begin(kGenericBuiltins), std::end(kGenericBuiltins), type.name) !=
         std::end(kGenericBuiltins);
}

// Classes that a model stands for.
bool is_class(std::string_view model) {
  return is_any_of(
      model, {"pathlib.Path", "pathlib.PosixPath", "pathlib.PurePath", "pathlib.PurePosixPath"});
}

}  // namespace

// A class whose methods, and those of its metaclass, are all known. Its metaclass; null: it is not.
const Class* Interpreter::known_metaclass(const Class* type, int depth) {
  constexpr size_t kMostClasses = 1000;
  const Class* plain = builtin_class("type");
  const Class* meta = plain;
  std::vector<const Class*> classes = {type};
  for (size_t i = 0; i < classes.size(); i++) {
    const Class* one = classes[i];
    if (depth > 30 || i > kMostClasses || one->doubted || one->open || one->decorated)
      return nullptr;
    if (!one->module) {
      if (!is_plain_builtin(*one) && !is_generic_builtin(*one)) return nullptr;
      continue;
    }
    if (one->metaclass) {
      const auto* own = as<Class>(one->metaclass, Type::kClass);
      if (!own || (own != plain && !known_metaclass(own, depth + 1))) return nullptr;
      if (derives_from(own, meta)) meta = own;
    }
    for (const Class* base : one->bases)
      if (std::find(classes.begin(), classes.end(), base) == classes.end()) classes.push_back(base);
  }
  return meta;
}

// True when it raised.
bool Interpreter::refuse_subscript(Ref object) {
  auto* type = as<Class>(object, Type::kClass);
  const int minor = finder_.interpreter().minor;
  const Class* meta = type ? known_metaclass(type) : nullptr;
  if (!meta || frames_.back().doubt.any()) return false;
  if (minor >= 9)
    for (const std::string_view name : kGenericBuiltins)
      if (derives_from(type, builtin_class(name))) return false;
  if (class_attribute(type, "__class_getitem__") || class_attribute(meta, "__getitem__"))
    return false;
  raise_certain("TypeError", minor < 11
                                 ? fmt::format("'{}' object is not subscriptable", meta->name)
                                 : fmt::format("type '{}' is not subscriptable", type->name));
  return true;
}

// The same for "|".
bool Interpreter::refuse_union(Ref a, Ref b) {
  const int minor = finder_.interpreter().minor;
  if (frames_.back().doubt.any() || a->doubted || b->doubted) return false;
  // The name of its type, of what is known to have no "|" of its own.
  const auto name_of = [&](Ref value) -> std::string_view {
    if (value->type == Type::kNone) return "NoneType";
    if (value->type == Type::kStr) return "str";
    if (const Model* model = as<Model>(value, Type::kModel); model && is_class(model->name))
      return "type";
    auto* type = as<Class>(value, Type::kClass);
    const Class* meta = type ? known_metaclass(type) : nullptr;
    if (!meta) return "";
    for (const char* method : {"__or__", "__ror__"})
      if (class_attribute(meta, method)) return "";
    return meta->name;
  };
  const std::string_view left = name_of(a), right = name_of(b);
  const bool has_text = a->type == Type::kStr || b->type == Type::kStr;
  const auto is_one = [](Ref value) {
    return value->type == Type::kClass || value->type == Type::kModel;
  };
  const bool has_class = is_one(a) || is_one(b);
  if (left.empty() || right.empty() || !(has_text || has_class)) return false;
  // As of 3.10 the classes themselves take classes and None, as of 3.14 texts too.
  if (has_class && minor >= (has_text ? 14 : 10)) return false;
  raise_certain("TypeError",
                fmt::format("unsupported operand type(s) for |: '{}' and '{}'", left, right));
  return true;
}

bool Interpreter::keeps_annotations() {
  const Module* module = current_module();
  return !module || !module->syntax || module->syntax->keeps_annotations() ||
         finder_.interpreter().minor >= 14;
}

// What a function's annotations ask for, where the function is made. False: it raised.
bool Interpreter::evaluate_annotations(const Stmt& function) {
  if (keeps_annotations()) return true;
  for (const Parameter& parameter : function.parameters)
    if (parameter.annotation && !evaluate(*parameter.annotation)) return false;
  return function.exprs.empty() || evaluate(*function.exprs[0]);
}

}  // namespace cohabit::python
