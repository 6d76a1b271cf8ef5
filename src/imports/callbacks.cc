// Code of the program's own that is given to what is not followed: to a parser that calls back, to
// a handler of signals, to a base class in a library that calls what a subclass has overridden.
// From then on it may run any number of times, so what it fills, counts and sets is not known any
// more.
#include <algorithm>
#include <array>

#include "imports/interpreter.h"
#include "imports/module_name.h"

namespace cohabit::python {
namespace {

constexpr int kDeepest = 4;          // objects in objects, functions that functions call
constexpr size_t kMostValues = 100;  // that are looked at

bool fills(std::string_view method) {
  static constexpr std::array<std::string_view, 8> kMethods = {
      "add", "append", "appendleft", "extend", "insert", "put", "setdefault", "update"};
  static_assert(std::is_sorted(kMethods.begin(), kMethods.end()));
  return std::binary_search(kMethods.begin(), kMethods.end(), method);
}

template <typename Visit>
void for_each_call(const Expr* expression, const Visit& visit) {
  if (!expression || expression->kind == ExprKind::kLambda) return;
  if (expression->kind == ExprKind::kCall) visit(*expression);
  for (const Expr* item : expression->items) for_each_call(item, visit);
}

// Not of the functions and classes in it.
template <typename Visit>
void for_each_call(Block block, const Visit& visit) {
  for (const Stmt* statement : block) {
    for (const Expr* expression : statement->exprs) for_each_call(expression, visit);
    if (statement->kind == StmtKind::kFunction || statement->kind == StmtKind::kClass) continue;
    for_each_block(*statement, [&](Block inner) { for_each_call(inner, visit); });
  }
}

// The names that the code says are not its own.
void add_declared(Block block, Scope& scope) {
  for (const Stmt* statement : block) {
    if (statement->kind == StmtKind::kGlobal)
      scope.globals.insert(scope.globals.end(), statement->names.begin(), statement->names.end());
    if (statement->kind == StmtKind::kNonlocal)
      scope.nonlocals.insert(scope.nonlocals.end(), statement->names.begin(),
                             statement->names.end());
    if (statement->kind != StmtKind::kFunction && statement->kind != StmtKind::kClass)
      for_each_block(*statement, [&](Block inner) { add_declared(inner, scope); });
  }
}

}  // namespace

// What is out already is not looked at again.
struct Interpreter::LetOut {
  std::vector<const Value*> seen;
  int depth = 0;
  bool is_new(const Value* value) {
    if (depth > kDeepest || seen.size() >= kMostValues) return false;
    if (std::find(seen.begin(), seen.end(), value) != seen.end()) return false;
    seen.push_back(value);
    return true;
  }
};

void Interpreter::open(Ref value) {
  if (!value || value == sys_modules_ || value == environment_) return;
  if (auto* items = as<Dict>(value, Type::kDict)) items->open_all();
  for (const Type type : {Type::kList, Type::kSet})
    if (auto* items = as<Sequence>(value, type)) items->open = true;
}

bool Interpreter::is_own_code(const Module* module) const {
  return module && !is_standard(module) && !is_installed(module);
}

void Interpreter::let_out(const Arguments& arguments) {
  if (!has_own_code_) return;
  LetOut out;
  for (Ref value : arguments.positional) let_out(value, out);
  for (const auto& [name, value] : arguments.keywords) let_out(value, out);
}

void Interpreter::let_out(Ref value) {
  if (!has_own_code_) return;
  LetOut out;
  let_out(value, out);
}

void Interpreter::let_out(Ref value, LetOut& out) {
  switch (value->type) {
    case Type::kFunction: {
      auto* function = static_cast<Function*>(value);
      if (!out.is_new(value)) return;
      if (is_own_code(function->module)) return may_run(function, nullptr, out);
      // One of a library may call what it was made around.
      out.depth++;
      if (function->outer)
        for (const auto& [name, around] : function->outer->own) let_out(around, out);
      out.depth--;
      return;
    }
    case Type::kMethod: {
      auto* method = static_cast<Method*>(value);
      auto* function = as<Function>(method->function, Type::kFunction);
      if (function && is_own_code(function->module) && out.is_new(value))
        may_run(function, method->self, out);
      return;
    }
    case Type::kModel: {  // `items.append`
      const auto* method = static_cast<const Model*>(value);
      if (method->self && fills(last_of(method->name))) open(method->self);
      return;
    }
    case Type::kInstance: {
      auto* instance = static_cast<Instance*>(value);
      if (!out.is_new(value)) return;
      out.depth++;
      let_out_methods(instance->of, instance, out);
      for (const auto& [name, attribute] : instance->names) let_out(attribute, out);
      if (instance->arguments) let_out(instance->arguments, out);
      out.depth--;
      return;
    }
    case Type::kTuple:
    case Type::kList:
    case Type::kSet: {
      if (!out.is_new(value)) return;
      out.depth++;
      for (Ref item : List(static_cast<Sequence*>(value)->items)) let_out(item, out);
      out.depth--;
      return;
    }
    case Type::kDict: {
      auto* dict = static_cast<Dict*>(value);
      if (dict == sys_modules_ || dict->variables_of || !out.is_new(value)) return;
      out.depth++;
      for (const auto& [key, item] : dict->items) let_out(item, out);
      out.depth--;
      return;
    }
    default:
      return;
  }
}

// The methods of the program's own classes: whoever has the object may call them.
void Interpreter::let_out_methods(Class* type, Instance* self, LetOut& out, int depth) {
  if (depth > kDeepest || !is_own_code(type->module)) return;
  for (const auto& [name, value] : type->names)
    if (auto* function = as<Function>(value, Type::kFunction);
        function && is_own_code(function->module) && out.is_new(function))
      may_run(function, function->binding == Function::kPlain ? self : nullptr, out);
  for (Class* base : type->bases) let_out_methods(base, self, out, depth + 1);
}

void Interpreter::may_run(Function* function, Ref self, LetOut& out) {
  if (frames_.empty() || exhausted()) return;
  const Block body = function->statement && function->syntax
                         ? function->syntax->body_of(*function->statement)
                         : Block();
  const RunningScope scope(*this);
  scope->module = function->module;
  scope->outer = function->outer;
  scope->owner = function->owner;
  add_declared(body, *scope.get());
  for (const Parameter& parameter : function->parameters)
    if (!parameter.name.empty()) scope->own[parameter.name] = opaque_;
  const auto is_declared = [](const auto& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const BlockFacts& facts = blocks_.of(body);
  for (const auto& [place, value] : facts.assigned)
    if (place.owner.empty() && !is_declared(scope->globals, place.name) &&
        !is_declared(scope->nonlocals, place.name))
      scope->own[place.name] = opaque_;
  if (self && !function->parameters.empty()) scope->own[function->parameters[0].name] = self;
  frames_.push_back({scope.get(), function->statement ? function->statement->line : 0});
  expect_names(facts);
  forget_collected(body);
  doubt_assigned(body);
  for (const auto& [place, value] : facts.assigned) open(value_at(place));
  const auto go_on = [&](const Expr& call) { may_run(call, out); };
  out.depth++;
  if (function->lambda)
    for_each_call(function->lambda->items[0], go_on);
  else
    for_each_call(body, go_on);
  out.depth--;
  frames_.pop_back();
}

// What a call in such code fills, and what it calls: functions of the program's own, and of the
// standard library what an object calls of itself (a thread that stops).
void Interpreter::may_run(const Expr& call, LetOut& out) {
  const Expr& callee = *call.items[0];
  const bool is_method = callee.kind == ExprKind::kAttribute;
  Ref object = is_method ? value_named(*callee.items[0]) : nullptr;
  if (object && fills(callee.text)) open(object);
  Ref called = value_named(callee);
  auto* instance = as<Instance>(object, Type::kInstance);
  if (!called && instance) called = class_attribute(instance->of, callee.text);
  auto* function = as<Function>(called, Type::kFunction);
  if (!function) return;
  const bool is_of_self = instance && callee.items[0]->text == "self";
  const bool is_followed =
      is_own_code(function->module) || (is_of_self && is_standard(function->module));
  if (is_followed && out.is_new(function)) may_run(function, instance, out);
}

// Of code that is skipped. In a library, of an object whose class the program has derived from the
// library's, whatever of the object it calls may be the program's own.
void Interpreter::may_run_calls(Block skipped) {
  if (!has_own_code_ || skipped.empty()) return;
  const bool is_own = is_own_code(current_module());
  auto* self = as<Instance>(scope()->self, Type::kInstance);
  const bool is_of_own = self && is_own_code(self->of->module);
  if (!is_own && !is_of_own && !(self && is_standard(current_module()))) return;
  LetOut out;
  bool calls_self = false;
  for_each_call(skipped, [&](const Expr& call) {
    may_run(call, out);
    const Expr& callee = *call.items[0];
    calls_self |= callee.kind == ExprKind::kAttribute && value_named(*callee.items[0]) == self;
  });
  if (!is_own && is_of_own && calls_self) let_out(self, out);
}

}  // namespace cohabit::python
