// Loops, and what they go over: iterators, and generators.
//
// A generator is run inside out: its body runs where somebody asks for what it yields, and each
// yield runs what is done with the value (the body of the loop, of the with statement), with the
// generator's own frame put aside. So imports on both sides come in the order of the program, and
// nothing has to be suspended. What cannot be known this way is how a generator goes on that was
// asked for one value by next().
#include <algorithm>
#include <iterator>
#include <utility>

#include "imports/interpreter.h"

namespace cohabit::python {
namespace {

constexpr int kMostGenerators = 40;  // that run inside each other

// Whether it is the end of a generator that is closed.
bool is_closing(const Raised& raised) {
  return raised.left || (raised.type && raised.type->name == "GeneratorExit");
}

// Takes what stands behind `size` out of the list, for as long as it lives.
template <class List>
class Aside {
 public:
  Aside(List& list, size_t size) : list_(list) {
    if (list.size() <= size) return;
    const auto first = list.begin() + static_cast<std::ptrdiff_t>(size);
    rest_.assign(std::make_move_iterator(first), std::make_move_iterator(list.end()));
    list.erase(first, list.end());
  }
  ~Aside() {
    list_.insert(list_.end(), std::make_move_iterator(rest_.begin()),
                 std::make_move_iterator(rest_.end()));
  }
  Aside(const Aside&) = delete;

 private:
  List& list_;
  List rest_;
};

}  // namespace

// Who runs a generator, and what became of it.
struct Interpreter::Consumer {
  const Taker& take;
  Asking asking;
  size_t catching, handling;
  uint64_t step_limit;
  Flow flow = Flow::kNext;        // by which `take` ended it
  std::optional<Raised> pending;  // what `take` raised, while the generator is closed
};

Flow Interpreter::run_generator(Iterator* generator, const Taker& take, Asking asking,
                                Ref* result) {
  if (generator->is_left || running_generators_ >= kMostGenerators || exhausted()) {
    guesses_++;
    return Flow::kNext;
  }
  generator->is_left = true;  // it can be run once
  Consumer consumer{take, asking, catching_.size(), handling_.size(), step_limit_, Flow::kNext, {}};
  running_generators_++;
  Ref value = run_function(generator->function, generator->arguments, &consumer);
  running_generators_--;
  if (ended_) ended_->of_consumer = false;
  if (raised_) raised_->of_consumer = false;
  if (consumer.flow == Flow::kNext) {
    if (value && result) *result = value;
    return value ? Flow::kNext : Flow::kRaise;
  }
  if (asking == Asking::kContext && consumer.flow == Flow::kRaise)
    return value ? Flow::kNext : Flow::kRaise;
  // Closed. What it raised while it was is its own, and goes on; else what `take` did.
  if (!value && !is_closing(*raised_)) return Flow::kRaise;
  raised_ = std::move(consumer.pending);
  return consumer.flow;
}

Ref Interpreter::yield(Ref value) {
  Consumer* consumer = frames_.back().consumer;
  if (!consumer || consumer->flow != Flow::kNext) return opaque_;
  Flow flow = Flow::kNext;
  {
    const Frame frame = frames_.back();
    leave_frame();
    // Whether it yields at all is in doubt for this round of the loop.
    Doubt& doubt = frames_.back().doubt;
    const bool left_loop = doubt.left_loop;
    doubt.left_loop |= consumer->asking == Asking::kLoop && frame.doubt.left();
    const uint64_t limit = std::exchange(step_limit_, consumer->step_limit);
    const size_t version_check = std::exchange(version_check_, SIZE_MAX);
    const uint64_t steps = steps_;
    if (consumer->asking == Asking::kContext) {
      flow = consumer->take(value);
    } else {
      const Aside catching(catching_, consumer->catching);
      const Aside handling(handling_, consumer->handling);
      flow = consumer->take(value);
    }
    frames_.back().doubt.left_loop = left_loop;
    version_check_ = version_check;
    step_limit_ = limit == 0 ? 0 : limit + (steps_ - steps);
    frames_.push_back(frame);
  }
  if (flow == Flow::kNext || flow == Flow::kContinue) return none_;
  consumer->flow = flow;
  if (ended_) ended_->of_consumer = true;
  if (flow == Flow::kRaise && consumer->asking == Asking::kContext) {
    if (raised_) raised_->of_consumer = true;
    return nullptr;
  }
  consumer->pending = std::move(raised_);
  return close(*consumer);
}

Ref Interpreter::close(const Consumer& consumer) {
  raised_ = Raised{};
  raised_->type = builtin_class("GeneratorExit");
  raised_->left = consumer.asking == Asking::kNext;
  return nullptr;
}

Ref Interpreter::evaluate_yield(const Expr& expression) {
  Ref value = expression.items[0] ? evaluate(*expression.items[0]) : none_;
  if (!value) return nullptr;
  if (expression.kind == ExprKind::kYield) return yield(value);
  Iterator* inner = as<Iterator>(value, Type::kIterator);
  if (inner && inner->is_generator()) {
    Ref result = opaque_;
    const Taker pass_on = [this](Ref item) { return yield(item) ? Flow::kNext : Flow::kRaise; };
    const Flow flow = run_generator(inner, pass_on, Asking::kContext, &result);
    if (flow == Flow::kRaise) return nullptr;
    // Closed, though the inner one has caught that.
    const Consumer* outer = frames_.back().consumer;
    return outer && outer->flow != Flow::kNext ? close(*outer) : result;
  }
  value = iterated(value);
  if (!value) return nullptr;
  const auto items = elements(value);
  if (!items) guesses_++;
  for (Ref item : items.value_or(std::span<const Ref>()))
    if (!yield(item)) return nullptr;
  return none_;
}

// All that it gives; open: that is not known. Null: it raised.
Sequence* Interpreter::collect(Iterator* iterator) {
  if (iterator->items) return iterator->items;
  auto* items = make<Sequence>(Type::kTuple);
  const uint64_t guesses = guesses_;
  const Flow flow = run_generator(iterator, [this, items](Ref item) {
    append(items, item);
    return items->items.size() < kMostRounds ? Flow::kNext : Flow::kBreak;
  });
  if (flow == Flow::kRaise) return nullptr;
  items->open |= flow != Flow::kNext || guesses_ != guesses;
  return iterator->items = items;
}

// What is left of its items, which it gives once.
std::span<const Ref> Interpreter::take_rest(Iterator* iterator) {
  const std::span<const Ref> items = iterator->items->items;
  const size_t first = std::min(std::exchange(iterator->next, items.size()), items.size());
  return items.subspan(first);
}

// A class of members, whose call finds one of them.
bool Interpreter::is_enumeration(const Class* type) {
  const Module* enums = as<Module>(loaded_module("enum"), Type::kModule);
  const Class* root = enums ? as<Class>(enums->names.get("Enum"), Type::kClass) : nullptr;
  return root && type != root && derives_from(type, root);
}

// The members of an enumeration, in the order of its text; null: it is none, or has bases that are
// not known. Those that it names twice are there twice, but where they stand in the class.
Sequence* Interpreter::members_of(Class* type) {
  if (!is_enumeration(type) || is_open(type)) return nullptr;
  // Where members are no texts or numbers too, they stand in the class, as they do in reality.
  bool stand_there = is_own_code(type->module);
  std::vector<Class*> bases(type->bases.begin(), type->bases.end());
  for (size_t i = 0; i < bases.size() && stand_there; i++) {
    stand_there = bases[i]->module && (!is_enumeration(bases[i]) || is_own_code(bases[i]->module));
    if (is_enumeration(bases[i]))
      bases.insert(bases.end(), bases[i]->bases.begin(), bases[i]->bases.end());
  }
  const bool are_filled = type->names.contains("__init__") || type->names.contains("__new__");
  Sequence* members = list({}, Type::kTuple);
  std::vector<std::pair<std::string_view, Ref>> made;
  for (const auto& [name, value] : type->names) {
    const bool is_member =
        !name.starts_with('_') && is_data(value) && !own_method(value, "__get__");
    if (!is_member) continue;
    auto* member = as<Instance>(value, Type::kInstance);
    if (member && member->of == type) {
      const auto& known = members->items;
      if (std::find(known.begin(), known.end(), member) == known.end())
        members->items.push_back(member);
      continue;
    }
    // A second name of the same value is another name of the same member.
    const auto is_same = [&](Ref known) {
      Ref other = static_cast<Instance*>(known)->names.get("value");
      return other && equal(other, value) == std::optional(true);
    };
    const auto end = members->items.end();
    const auto same = stand_there ? std::find_if(members->items.begin(), end, is_same) : end;
    if (same != end) {
      made.emplace_back(name, *same);
      continue;
    }
    member = make<Instance>(type);
    member->open = are_filled;
    member->names["name"] = member->names["_name_"] = constant(name);
    member->names["value"] = member->names["_value_"] =
        value->type == Type::kInstance ? opaque_ : value;  // auto()
    members->items.push_back(member);
    made.emplace_back(name, member);
  }
  if (stand_there)
    for (const auto& [name, member] : made) type->names[name] = member;
  return members;
}

Ref Interpreter::iterated(Ref value) {
  if (Class* type = as<Class>(value, Type::kClass)) {
    Ref members = members_of(type);
    return members ? members : value;
  }
  if (Instance* instance = as<Instance>(value, Type::kInstance);
      instance && !instance->items && !instance->text) {
    Ref method = class_attribute(instance->of, "__iter__");
    if (!as<Function>(method, Type::kFunction)) return value;
    Ref iterator = call(bind_method(method, instance, instance->of), {});
    if (!iterator || iterator->type == Type::kInstance) return iterator ? value : nullptr;
    return iterated(iterator);
  }
  Iterator* iterator = as<Iterator>(value, Type::kIterator);
  if (!iterator) return value;
  const Sequence* all = collect(iterator);
  if (!all) return nullptr;
  Sequence* rest = list(take_rest(iterator), Type::kTuple);
  rest->open = all->open;
  return rest;
}

Ref Interpreter::iterator_over(Ref value) {
  if (Iterator* known = as<Iterator>(value, Type::kIterator)) return known;
  value = iterated(value);
  const auto items = value ? elements(value) : std::nullopt;
  if (!items) return value;
  auto* result = make<Iterator>();
  result->items = list(*items, Type::kTuple);
  result->items->open = holds_more(value);
  return result;
}

Ref Interpreter::next_of(Iterator* iterator, Ref otherwise) {
  Ref next = nullptr;
  bool is_open = false;
  if (Sequence* items = iterator->items) {
    if (iterator->next < items->items.size()) return items->items[iterator->next++];
    is_open = items->open;
  } else if (iterator->is_left) {
    is_open = !iterator->function->yields_once;
  } else {
    const uint64_t guesses = guesses_;
    const Taker take = [&](Ref item) {
      next = item;
      return Flow::kBreak;
    };
    const Flow flow = run_generator(iterator, take, Asking::kNext);
    if (flow == Flow::kRaise) return nullptr;
    is_open = guesses_ != guesses;
  }
  if (next) return next;
  if (is_open) return opaque_;
  if (otherwise) return otherwise;
  return expects("StopIteration") ? raise("StopIteration", "") : opaque_;
}

Flow Interpreter::execute_for(const Stmt& statement) {
  Ref iterable = evaluate(*statement.exprs[1]);
  if (!iterable) return Flow::kRaise;
  size_t rounds = 0;
  Round round(*this);
  const Taker take = [&](Ref item) {
    if (rounds++ >= kMostRounds) return Flow::kBreak;
    frames_.back().doubt.left_round = false;
    return assign(*statement.exprs[0], plainly(item)) ? execute(statement.body) : Flow::kRaise;
  };
  Iterator* iterator = as<Iterator>(iterable, Type::kIterator);
  if (iterator && iterator->is_generator()) {
    const uint64_t guesses = guesses_;
    const Flow flow = run_generator(iterator, take);
    if (flow == Flow::kBreak) return Flow::kNext;
    if (flow != Flow::kNext) return flow;
    if (rounds == 0 && guesses_ != guesses) return loop_over_unknown(statement);
    return execute_else(statement, round);
  }
  if (!iterator) {
    iterable = iterated(iterable);
    if (!iterable) return Flow::kRaise;
  }
  std::optional<std::span<const Ref>> items;
  if (!iterator)
    items = elements(iterable);
  else if (const Sequence* all = iterator->items; !all->open || !all->items.empty())
    items = all->items;
  if (!items) return loop_over_unknown(statement);
  // The body may take some of an iterator's items itself, by next().
  size_t own = 0;
  size_t& next = iterator ? iterator->next : own;
  while (next < items->size()) {
    const Flow flow = take((*items)[next++]);
    if (flow == Flow::kBreak) return Flow::kNext;
    if (flow == Flow::kReturn || flow == Flow::kRaise) return flow;
  }
  if (holds_more(iterator ? iterator->items : iterable)) {
    expect_names(blocks_.of(statement.body));
    forget_collected(statement.body);
  }
  return execute_else(statement, round);
}

Flow Interpreter::loop_over_unknown(const Stmt& statement) {
  if (!assign(*statement.exprs[0], opaque())) return Flow::kRaise;
  skip(statement.body, statement.line, "what a loop goes over");
  // Who looks for something in what is there mostly finds it, and ends the loop.
  const BlockFacts& facts = blocks_.of(statement.body);
  if (!facts.returns && !facts.leaves_loop) return execute(statement.orelse);
  skip(statement.orelse, statement.line, "what a loop goes over");
  return Flow::kNext;
}

}  // namespace cohabit::python
