// Code of the program's own that is given to what is not followed: to a parser that calls back, to
// a handler of signals, to a base class in a library that calls what a subclass has overridden.
// From then on it may run any number of times, so what it fills, counts and sets is not known any
// more.
#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "imports/interpreter.h"
#include "imports/module_name.h"

namespace cohabit::python {
namespace {

constexpr int kDeepest = 12;  // objects in objects, functions that functions call
constexpr size_t kMostWork =
    3'000;  // calls and values that are looked at, of what is given at once
constexpr uint64_t kMostWorkOfAll = 2'000'000;

bool fills(std::string_view method) {
  static constexpr std::array<std::string_view, 8> kMethods = {
      "add", "append", "appendleft", "extend", "insert", "put", "setdefault", "update"};
  static_assert(std::is_sorted(kMethods.begin(), kMethods.end()));
  return std::binary_search(kMethods.begin(), kMethods.end(), method);
}

// Methods that the language calls, where that is not followed: by a sort, a set, a format, at an
// object's end. Those that are run where they are called:
bool is_called_unseen(std::string_view name) {
  static constexpr std::array<std::string_view, 20> kFollowed = {
      "__bool__",          "__call__", "__class_getitem__", "__contains__", "__enter__",
      "__exit__",          "__get__",  "__getattr__",       "__getitem__",  "__init__",
      "__init_subclass__", "__iter__", "__missing__",       "__new__",      "__post_init__",
      "__prepare__",       "__set__",  "__set_name__",      "__setattr__",  "__setitem__"};
  static_assert(std::is_sorted(kFollowed.begin(), kFollowed.end()));
  return name.starts_with("__") && name.ends_with("__") &&
         !std::binary_search(kFollowed.begin(), kFollowed.end(), name);
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
  std::unordered_set<const void*> seen;
  size_t left = kMostWork;
  int depth = 0;
  bool only_empty = false;  // of a branch that runs once or not at all, see forget_collected
  bool is_new(const void* value) {
    if (depth > kDeepest || left == 0) return false;
    left--;
    return seen.insert(value).second;
  }
  bool spend() {
    if (left == 0) return false;
    left--;
    return true;
  }
};

// All work of this kind, of a program that hands over much and often.
bool Interpreter::may_let_out() {
  if (!has_own_code_ || frames_.empty() || exhausted()) return false;
  if (let_out_work_ < kMostWorkOfAll) return true;
  if (!std::exchange(let_out_is_over_, true))
    plan_.problems.emplace_back(
        "the program gives its own code to other code so often that what that may do is not "
        "followed "
        "to the end");
  return false;
}

void Interpreter::let_out(const Arguments& arguments) {
  if (!may_let_out()) return;
  LetOut out;
  for (Ref value : arguments.positional) let_out(value, out);
  for (const auto& [name, value] : arguments.keywords) let_out(value, out);
  let_out_work_ += kMostWork - out.left;
}

void Interpreter::let_out(Ref value) {
  if (!may_let_out()) return;
  LetOut out;
  let_out(value, out);
  let_out_work_ += kMostWork - out.left;
}

// What a model was given that has not told all: it calls functions, and looks into nothing.
void Interpreter::let_out_code(const Arguments& arguments) {
  if (!may_let_out()) return;
  LetOut out;
  const auto let = [&](Ref value) {
    if (value->type == Type::kFunction || value->type == Type::kMethod ||
        value->type == Type::kModel || value->type == Type::kIterator)
      let_out(value, out);
  };
  for (Ref value : arguments.positional) let(value);
  for (const auto& [name, value] : arguments.keywords) let(value);
  let_out_work_ += kMostWork - out.left;
}

void Interpreter::let_out(Ref value, LetOut& out) {
  switch (value->type) {
    case Type::kFunction: {
      auto* function = static_cast<Function*>(value);
      if (!out.is_new(value)) return;
      if (is_own_code(function->module)) return may_run(function, {}, out);
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
        may_run(function, Arguments(arena_, {method->self}), out);
      return;
    }
    case Type::kModel: {  // `items.append`
      const auto* method = static_cast<const Model*>(value);
      if (method->self && fills(last_of(method->name))) fill(method->self, out);
      return;
    }
    case Type::kIterator: {
      auto* generator = static_cast<Iterator*>(value);
      if (generator->function && is_own_code(generator->function->module) && out.is_new(value))
        may_run(generator->function, generator->arguments, out);
      return;
    }
    case Type::kClass:
      return let_out_methods(static_cast<Class*>(value), nullptr, out);
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
      const List& items = static_cast<Sequence*>(value)->items;
      out.depth++;
      for (size_t i = 0; i < items.size() && out.spend(); i++) let_out(items[i], out);
      out.depth--;
      return;
    }
    case Type::kDict: {
      auto* dict = static_cast<Dict*>(value);
      if (dict == sys_modules_ || dict->variables_of || !out.is_new(value)) return;
      out.depth++;
      for (const auto& [key, item] : dict->items)
        if (out.spend()) let_out(item, out);
      out.depth--;
      return;
    }
    default:
      return;
  }
}

// The methods of the program's own classes: whoever has the object may call them.
void Interpreter::let_out_methods(Class* type, Instance* self, LetOut& out) {
  if (!is_own_code(type->module) || !out.is_new(type)) return;
  for (const auto& [name, value] : type->names) {
    auto* function = as<Function>(value, Type::kFunction);
    if (!function || !is_own_code(function->module) || !out.is_new(function)) continue;
    Arguments arguments(arena_);
    if (self && function->binding == Function::kPlain) arguments.positional.push_back(self);
    may_run(function, arguments, out);
  }
  out.depth++;
  for (Class* base : type->bases) let_out_methods(base, self, out);
  out.depth--;
}

// May hold more than is known.
void Interpreter::fill(Ref container, const LetOut& out) {
  if (!container || container == sys_modules_ || container == environment_) return;
  out.only_empty ? open_if_empty(container) : open_all(container);
}

// Parameters that are not given have what they have by themselves.
void Interpreter::may_run(Function* function, const Arguments& given, LetOut& out) {
  const Block body = function->statement && function->syntax
                         ? function->syntax->body_of(*function->statement)
                         : Block();
  const RunningScope scope(*this);
  scope->module = function->module;
  scope->outer = function->outer;
  scope->owner = function->owner;
  add_declared(body, *scope.get());
  size_t position = 0;
  for (size_t i = 0; i < function->parameters.size(); i++) {
    const Parameter& parameter = function->parameters[i];
    const bool is_plain = parameter.kind == Parameter::kPositional;
    const bool is_one = is_plain || parameter.kind == Parameter::kKeywordOnly;
    Ref value = is_one ? given.get(is_plain ? position++ : SIZE_MAX, parameter.name) : nullptr;
    if (!value && is_one) value = function->defaults[i];
    if (!parameter.name.empty()) scope->own[parameter.name] = value ? value : opaque_;
  }
  if (!given.positional.empty()) scope->self = given.positional[0];
  add_functions(body, scope.get(), out);
  const auto is_declared = [](const auto& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const BlockFacts& facts = blocks_.of(body);
  for (const auto& [place, value] : facts.assigned)
    if (place.owner.empty() && !scope->own.contains(place.name) &&
        !is_declared(scope->globals, place.name) && !is_declared(scope->nonlocals, place.name))
      scope->own[place.name] = opaque_;
  frames_.push_back({scope.get(), function->statement ? function->statement->line : 0});
  expect_names(facts);
  forget_collected(body, out.only_empty);
  doubt_assigned(body);
  for (const auto* names : {&scope->globals, &scope->nonlocals})
    for (const std::string_view name : *names)
      if (Ref value = find_name(name)) bind(name, doubt_replaced(value));
  const auto go_on = [&](const Expr& call) { may_run(call, out); };
  out.depth++;
  if (function->lambda)
    for_each_call(function->lambda->items[0], go_on);
  else
    for_each_call(body, go_on);
  out.depth--;
  frames_.pop_back();
}

// What a call in such code fills, what it gives to others, and what it calls: functions of the
// program's own, and of the standard library what an object calls of itself (a thread that stops).
void Interpreter::may_run(const Expr& call, LetOut& out) {
  if (!out.spend()) return;
  const Expr& callee = *call.items[0];
  const bool is_method = callee.kind == ExprKind::kAttribute;
  Ref object = is_method ? value_named(*callee.items[0]) : nullptr;
  if (object && fills(callee.text)) fill(object, out);
  if (!object && is_method && fills(callee.text)) fill_any_item(*callee.items[0], out);
  Arguments given(arena_);
  auto* instance = as<Instance>(object, Type::kInstance);
  if (instance) given.positional.push_back(instance);
  for (size_t i = 1; i < call.items.size(); i++) {
    const Expr& item = *call.items[i];
    const bool is_keyword = item.kind == ExprKind::kKeyword;
    const Expr& expression = is_keyword ? *item.items[0] : item;
    Ref value = value_named(expression);
    const bool is_code = value && (value->type == Type::kFunction || value->type == Type::kMethod);
    if (is_code) let_out(value, out);
    if (!value && expression.kind == ExprKind::kAttribute && fills(expression.text))
      if (Ref filled = value_named(*expression.items[0])) fill(filled, out);
    if (is_keyword)
      given.keywords.emplace_back(item.text, value ? value : opaque_);
    else
      given.positional.push_back(value ? value : opaque_);
  }
  Ref called = value_named(callee);
  if (!called && instance) called = class_attribute(instance->of, callee.text);
  const bool has_owner = object && object->type != Type::kOpaque && object->type != Type::kModule;
  if (called ? called->type == Type::kOpaque : !has_owner)  // as heapq.heappush(items, x)
    for (Ref value : given.positional) fill(value, out);
  if (const auto* model = as<Model>(called, Type::kModel);
      model && model->name == "builtins.setattr")
    set_any_name(call);
  if (auto* type = as<Class>(called, Type::kClass)) {
    called = is_own_code(type->module) ? class_attribute(type, "__init__") : nullptr;
    given.positional.insert(given.positional.begin(), opaque_);
  }
  if (auto* object_called = as<Instance>(called, Type::kInstance)) {
    called = class_attribute(object_called->of, "__call__");
    given.positional.insert(given.positional.begin(), object_called);
  }
  auto* function = as<Function>(called, Type::kFunction);
  if (!function) return;
  if (instance && function->binding != Function::kPlain)
    given.positional.erase(given.positional.begin());
  const bool is_of_self = instance && instance == scope()->self;
  const bool is_followed =
      is_own_code(function->module) || (is_of_self && is_standard(function->module));
  if (is_followed && out.is_new(function)) return may_run(function, given, out);
  if (!is_followed) fill_by(*function, given, out);
}

// What a library's function puts into what it is given, at first hand.
void Interpreter::fill_by(const Function& function, const Arguments& given, const LetOut& out) {
  if (!function.statement || !function.syntax) return;
  const Block body = function.syntax->body_of(*function.statement);
  for (const auto& [place, counts, removes] : blocks_.of(body).collected)
    for (size_t i = 0; place.owner.empty() && i < function.parameters.size(); i++)
      if (function.parameters[i].name == place.name) fill(given.get(i, place.name), out);
}

// setattr(object, "name", value)
void Interpreter::set_any_name(const Expr& call) {
  if (call.items.size() < 3) return;
  auto* object = as<Instance>(value_named(*call.items[1]), Type::kInstance);
  const Expr& name = *call.items[2];
  if (!object) return;
  if (name.kind == ExprKind::kString) {
    Ref value = data_of(object, name.text);
    if (value) object->names[name.text] = doubt_replaced(value);
    return;
  }
  for (const auto& [own, value] : object->names)
    if (Ref other = doubt_replaced(value); other != value) *object->names.find(own) = other;
}

// Those that the code makes, for its own calls of them.
void Interpreter::add_functions(Block block, Scope* scope, LetOut& out) {
  for (const Stmt* statement : block) {
    if (statement->kind == StmtKind::kClass) continue;
    if (statement->kind != StmtKind::kFunction) {
      for_each_block(*statement, [&](Block inner) { add_functions(inner, scope, out); });
      continue;
    }
    if (!out.spend()) return;
    auto* function = make<Function>();
    function->name = statement->name;
    function->statement = statement;
    function->parameters = statement->parameters;
    function->defaults.resize(function->parameters.size());
    function->module = scope->module;
    function->syntax = scope->module->syntax;
    function->outer = capture(scope);
    scope->own[statement->name] = function;
  }
}

// An object's special methods may run as soon as there is one. The work is bounded, and not told:
// a program that makes many objects is seen as one that makes some.
void Interpreter::let_out_special(Instance* instance) {
  constexpr uint64_t kMostWorkOfObjects = 300'000;
  if (!is_own_code(instance->of->module) || let_out_work_ > kMostWorkOfObjects || !may_let_out())
    return;
  LetOut out;
  std::vector<Class*> classes = {instance->of};
  for (size_t i = 0; i < classes.size() && i < kDeepest; i++) {
    const Class* type = classes[i];
    if (!is_own_code(type->module)) continue;
    for (const auto& [name, value] : type->names) {
      auto* function = as<Function>(value, Type::kFunction);
      const bool is_unseen = is_called_unseen(name) ||
                             (name == "__getitem__" && i == 0 && !type->names.contains("__iter__"));
      if (function && is_unseen) may_run(function, Arguments(arena_, {instance}), out);
    }
    classes.insert(classes.end(), type->bases.begin(), type->bases.end());
  }
  let_out_work_ += kMostWork - out.left;
}

// What a metaclass of the program's own does when a class is made.
void Interpreter::let_out_metaclass(Class* type) {
  if (!may_let_out()) return;
  Class* meta = nullptr;
  std::vector<Class*> classes = {type};
  for (size_t i = 0; i < classes.size() && i < kDeepest && !meta; i++) {
    meta = as<Class>(classes[i]->metaclass, Type::kClass);
    classes.insert(classes.end(), classes[i]->bases.begin(), classes[i]->bases.end());
  }
  if (!meta || !is_own_code(meta->module)) return;
  LetOut out;
  for (const auto& [name, value] : meta->names)
    if (auto* function = as<Function>(value, Type::kFunction)) {
      const bool is_of_meta = name == "__new__" || name == "__prepare__";
      may_run(function, Arguments(arena_, {is_of_meta ? meta : type}), out);
    }
  let_out_work_ += kMostWork - out.left;
}

// The program has given its own functions to one of a library, which was followed or not: it may
// have kept them, and may call them when the program next calls what is not followed.
void Interpreter::note_given(const Function& to, const Arguments& arguments, bool is_followed) {
  if (!is_own_code(current_module()) || is_own_code(to.module)) return;
  if (!is_followed) {
    let_out_code(arguments);
    return let_out_given();
  }
  const auto keep = [this](Ref value) {
    if (value->type == Type::kFunction || value->type == Type::kMethod) given_.push_back(value);
  };
  for (Ref value : arguments.positional) keep(value);
  for (const auto& [name, value] : arguments.keywords) keep(value);
}

void Interpreter::let_out_given() {
  for (Ref value : std::exchange(given_, {})) let_out(value);
}

// `groups[key].append(1)`, of a key that is not known: any item, or a new one.
void Interpreter::fill_any_item(const Expr& item, const LetOut& out) {
  if (item.kind != ExprKind::kSubscript) return;
  Ref container = value_named(*item.items[0]);
  fill(container, out);
  if (auto* dict = as<Dict>(container, Type::kDict); dict && container != sys_modules_)
    for (const auto& [key, value] : dict->items) open_if_empty(value);
  if (auto* list = as<Sequence>(container, Type::kList))
    for (Ref value : list->items) open_if_empty(value);
}

// Of code that is skipped. In a library, of an object whose class the program has derived from the
// library's, whatever of the object it calls may be the program's own.
void Interpreter::may_run_calls(Block skipped, bool only_empty) {
  if (skipped.empty() || !may_let_out()) return;
  const bool is_own = is_own_code(current_module());
  auto* self = as<Instance>(scope()->self, Type::kInstance);
  const bool is_of_own = self && is_own_code(self->of->module);
  if (!is_own && !is_of_own && !(self && is_standard(current_module()))) return;
  LetOut out;
  out.only_empty = only_empty;
  bool calls_self = false;
  for_each_call(skipped, [&](const Expr& call) {
    may_run(call, out);
    const Expr& callee = *call.items[0];
    calls_self |= callee.kind == ExprKind::kAttribute && value_named(*callee.items[0]) == self;
  });
  out.only_empty = false;
  if (!is_own && is_of_own && calls_self) let_out(self, out);
  let_out_work_ += kMostWork - out.left;
}

void Interpreter::may_run_calls(const Expr& skipped) {
  if (!may_let_out() || !is_own_code(current_module())) return;
  LetOut out;
  out.only_empty = true;
  for_each_call(&skipped, [&](const Expr& call) { may_run(call, out); });
  let_out_work_ += kMostWork - out.left;
}

}  // namespace cohabit::python
