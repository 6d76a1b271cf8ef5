// The with statement.
#include <utility>

#include "imports/interpreter.h"

namespace cohabit::python {

// Context managers are opaque, but for contextlib.suppress, generators that contextlib has made one
// of, and classes whose methods are known.
Flow Interpreter::execute_with(const Stmt& statement) {
  return execute_with(statement, 0);
}

// From the manager on that stands at exprs[first]; behind it, what gets its value.
Flow Interpreter::execute_with(const Stmt& statement, size_t first) {
  if (first + 1 >= statement.exprs.size()) return execute(statement.body);
  Ref context = evaluate(*statement.exprs[first]);
  if (!context) return Flow::kRaise;
  const auto go_on = [&](Ref entered) {
    const Expr* target = statement.exprs[first + 1];
    if (target && !assign(*target, entered)) return Flow::kRaise;
    return execute_with(statement, first + 2);
  };
  auto* manager = as<Instance>(context, Type::kInstance);
  std::optional<Early> early;
  if (statement.is_async) early.emplace(*this);
  if (!manager)  // a path: importlib.resources.path
    return go_on(context->type == Type::kPath ? context : opaque());
  const bool by_contextlib = manager->of->module && manager->of->module->spec.name == "contextlib";
  const bool is_async = statement.is_async;
  if (by_contextlib && manager->of->name == "suppress" && manager->arguments) {
    std::vector<std::string_view> errors;
    for (Ref type : manager->arguments->items)
      if (const auto* known = as<Class>(type, Type::kClass)) errors.push_back(known->name);
    const Catching catching(*this, std::move(errors));
    const Flow flow = go_on(opaque());
    std::optional<Raised> caught = raised_;
    if (caught) caught->failed_import = raised_is("ImportError");
    const Flow after = suppress(flow, manager->arguments);
    if (flow == Flow::kRaise && after == Flow::kNext && caught)
      mark_left_values(*caught, statement.body, {});
    return after;
  }
  if (!manager->of->module) return go_on(manager);
  if (Iterator* generator = by_contextlib ? generator_of(manager) : nullptr)
    return go_through(generator, go_on);
  // Of a library's that waits neither end is followed.
  const bool is_followed = !is_async || by_contextlib || is_own_code(manager->of->module);
  Ref enter =
      is_followed ? class_attribute(manager->of, is_async ? "__aenter__" : "__enter__") : nullptr;
  if (!enter) return go_on(opaque());
  Ref entered = awaited(call(bind_method(enter, manager, manager->of), {}), is_async);
  if (!entered) return Flow::kRaise;
  // Warnings come from anywhere.
  if (manager->of->name == "catch_warnings")
    if (Sequence* collected = sequence_of(entered)) collected->open = true;
  return leave(manager, go_on(entered), is_async);
}

// What a method of a manager gives in the end. Null: it raised.
Ref Interpreter::awaited(Ref result, bool is_async) {
  if (!is_async || !result) return result;
  auto* waiting = as<Instance>(result, Type::kInstance);
  return waiting ? await(waiting) : opaque_;
}

Flow Interpreter::suppress(Flow flow, Ref types) {
  if (flow != Flow::kRaise || !raised_ || raised_->left) return flow;
  if (raised_->type && !is_subclass(raised_->type, types).value_or(true)) return flow;
  raised_.reset();
  return Flow::kNext;
}

// What contextlib.contextmanager has made of a call of a generator function.
Iterator* Interpreter::generator_of(Instance* manager) const {
  if (manager->of->name != "_GeneratorContextManager" &&
      manager->of->name != "_AsyncGeneratorContextManager")
    return nullptr;
  auto* generator = as<Iterator>(manager->names.get("gen"), Type::kIterator);
  return generator && generator->function && !generator->is_left ? generator : nullptr;
}

// The body runs where the generator yields. If it does not, or that is not known, the body runs all
// the same.
Flow Interpreter::go_through(Iterator* generator, const Taker& body) {
  bool has_run = false;
  Flow inner = Flow::kNext;
  const Flow outer = run_generator(
      generator,
      [&](Ref value) {
        if (std::exchange(has_run, true)) return Flow::kNext;
        inner = body(value);
        return inner == Flow::kRaise ? Flow::kRaise : Flow::kNext;
      },
      Asking::kContext);
  if (outer == Flow::kRaise) return outer;
  if (!has_run) return body(opaque());
  return inner == Flow::kRaise ? Flow::kNext : inner;
}

Flow Interpreter::leave(Instance* manager, Flow flow, bool is_async) {
  if (flow == Flow::kRaise && raised_ && raised_->left) return flow;
  Ref exit = class_attribute(manager->of, is_async ? "__aexit__" : "__exit__");
  if (!exit) return flow;
  const auto pending = raised_;
  raised_.reset();
  Arguments nothing;
  nothing.positional = {none_, none_, none_};
  if (pending)
    nothing.positional = {pending->type ? pending->type : opaque(),
                          pending->value ? pending->value : opaque(), none_};
  Ref returned = frames_.back().returned;
  const uint64_t guesses = guesses_;
  Ref result = awaited(call(bind_method(exit, manager, manager->of), nothing), is_async);
  frames_.back().returned = returned;
  if (!result) return Flow::kRaise;
  const auto is_kept = truth(result);
  if (pending && is_kept == std::optional(true)) return Flow::kNext;
  raised_ = pending;
  // What is on an ExitStack may take it. Other managers rarely do, where that is not known.
  const bool is_sure = is_kept && guesses == guesses_;
  if (pending && !is_sure && manager->of->module &&
      manager->of->module->spec.name == "contextlib") {
    raised_->doubted = true;
    if (!is_unawaited_failure()) return flow;
    clear_raised();
    undecided("whether a context manager takes the failure of an import");
    return Flow::kNext;
  }
  return flow;
}

}  // namespace cohabit::python
