// The end of the program in code that is not run, because nobody knows whether it would be: what
// stands behind it is in doubt, for all who call as well.
#include <algorithm>

#include "imports/interpreter.h"

namespace cohabit::python {

// Who calls is not reached either, if the program has ended.
void Interpreter::leave_frame() {
  const bool may_have_ended = frames_.back().doubt.ended;
  frames_.pop_back();
  if (!frames_.empty()) frames_.back().doubt.ended |= may_have_ended;
}

void Interpreter::may_raise(std::string_view error) {
  if (!frames_.empty() && !is_installed(current_module()) && expects(error))
    frames_.back().doubt.raised = true;
}

void Interpreter::may_end(const Ends& ends) {
  Doubt& doubt = frames_.back().doubt;
  const bool is_taken = ends.by_error && waits_for("SystemExit", false);
  doubt.raised |= is_taken;
  doubt.ended |= ends.at_once || (ends.by_error && !is_taken);
}

// A loop may skip the same block again and again. What its names are may change, but rarely so that
// it ends the program where it did not before.
const Interpreter::Ends& Interpreter::ends_in(Block block) {
  constexpr int kMostAsked = 8;
  Ends& known = known_ends_[block.data()];
  if (known.by_error || known.at_once || known.asked >= kMostAsked) return known;
  known.asked++;
  known.functions_left = Ends().functions_left;
  find_ends(block, nullptr, 0, known);
  return known;
}

void Interpreter::may_end(const Expr& skipped) {
  if (!is_own_code(current_module())) return;
  Ends ends;
  for_each_call(&skipped, [&](const Expr& call) { find_ends(call, nullptr, 0, ends); });
  may_end(ends);
}

// What in code that is not run would end the program. `in`: the function whose code it is; null:
// the one that runs.
void Interpreter::find_ends(Block block, const Function* in, int depth, Ends& found) {
  const auto takes_exit = [](std::string_view name) {
    return name.empty() || name == "BaseException" || name == "SystemExit";
  };
  const Class* exit = builtin_class("SystemExit");
  const auto is_exit = [&](const Expr* error) {
    const auto* type = error ? as<Class>(named_in(*error, in), Type::kClass) : nullptr;
    return type && exit && derives_from(type, exit);
  };
  for (const Stmt* statement : block) {
    if (statement->kind == StmtKind::kFunction || statement->kind == StmtKind::kClass) continue;
    if (statement->kind == StmtKind::kRaise) found.by_error |= is_exit(raised_error(*statement));
    for (const Expr* expression : statement->exprs)
      for_each_call(expression, [&](const Expr& call) { find_ends(call, in, depth, found); });
    const bool before = found.by_error;
    find_ends(statement->body, in, depth, found);
    const std::vector<std::string_view> errors = errors_of(*statement);
    if (std::any_of(errors.begin(), errors.end(), takes_exit)) found.by_error = before;
    find_ends(statement->orelse, in, depth, found);
    find_ends(statement->finally, in, depth, found);
    for (const Handler& handler : statement->handlers) find_ends(handler.body, in, depth, found);
    for (const Case& one : statement->cases) find_ends(one.body, in, depth, found);
  }
}

// What a name is in code of that function, or in the code that runs.
Ref Interpreter::named_in(const Expr& name, const Function* in) {
  if (!in) return value_named(name);
  if (name.kind != ExprKind::kName) return nullptr;
  Ref value = in->module->names.get(name.text);
  return value ? value : builtins_.get(name.text);
}

void Interpreter::find_ends(const Expr& call, const Function* in, int depth, Ends& found) {
  const Expr& callee = *call.items[0];
  if (callee.kind == ExprKind::kName) return find_ends(named_in(callee, in), depth, found);
  if (callee.kind != ExprKind::kAttribute) return;
  const Expr& owner = *callee.items[0];
  const bool is_name = owner.kind == ExprKind::kName;
  if (in && is_name && owner.text == "self" && in->owner)
    return find_ends(class_attribute(in->owner, callee.text), depth, found);
  Ref object = named_in(owner, in);
  if (const auto* instance = as<Instance>(object, Type::kInstance))
    find_ends(class_attribute(instance->of, callee.text), depth, found);
  if (const auto* type = as<Class>(object, Type::kClass))
    find_ends(class_attribute(type, callee.text), depth, found);
  if (const auto* module = as<Module>(object, Type::kModule))
    find_ends(module->names.get(callee.text), depth, found);
  if (object || !is_name) return;
  // `import sys` may stand in the same code.
  found.by_error |= owner.text == "sys" && callee.text == "exit";
  found.at_once |= owner.text == "os" && (callee.text == "_exit" || callee.text == "abort");
}

void Interpreter::find_ends(Ref called, int depth, Ends& found) {
  constexpr int kDeepest = 4;
  if (const auto* model = as<Model>(called, Type::kModel)) {
    const std::string_view name = model->name;
    found.by_error |= name == "sys.exit" || name == "builtins.exit" || name == "builtins.quit";
    found.at_once |= name == "posix._exit" || name == "posix.abort";
  }
  if (depth >= kDeepest || !called) return;
  if (const auto* method = as<Method>(called, Type::kMethod))
    return find_ends(method->function, depth, found);
  if (const auto* type = as<Class>(called, Type::kClass); type && is_own_code(type->module))
    return find_ends(class_attribute(type, "__init__"), depth, found);
  if (const auto* object = as<Instance>(called, Type::kInstance)) {
    Ref call = object->of == builtin_class("partial") ? object->names.get("func")
                                                      : class_attribute(object->of, "__call__");
    return find_ends(call, depth + 1, found);
  }
  const auto* function = as<Function>(called, Type::kFunction);
  if (!function || found.functions_left == 0) return;
  found.functions_left--;
  // Of a library what is at hand: parser.error(), parser.exit().
  const int inside = depth + (is_own_code(function->module) ? 1 : 2);
  if (inside > kDeepest) return;
  if (function->lambda)
    for_each_call(function->lambda->items[0],
                  [&](const Expr& call) { find_ends(call, function, inside, found); });
  else if (function->statement && function->syntax)
    find_ends(function->syntax->body_of(*function->statement), function, inside, found);
}

}  // namespace cohabit::python
