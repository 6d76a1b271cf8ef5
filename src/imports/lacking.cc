// What a program of the user goes on with where an import has failed: `yaml = None`, `HAS_TORCH =
// False`, `return 1`. Who uses that in place of the module, or refuses to work because of it, fails
// for want of the module.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "imports/interpreter.h"
#include "imports/module_name.h"

namespace cohabit::python {

Interpreter::BehindLacking::BehindLacking(Interpreter& in, const Raised* error)
    : in_(in), is_behind_(error) {
  if (error) in_.behind_lacking_.push_back({error, in_.scope()});
}

Interpreter::BehindLacking::~BehindLacking() {
  if (is_behind_) in_.behind_lacking_.pop_back();
}

bool Interpreter::in_doubt() const {
  return early_ > 0 || std::any_of(frames_.begin(), frames_.end(),
                                   [](const Frame& frame) { return frame.doubt.any(); });
}

// Whether the module may be there after all: the program has written it, or installed something.
bool Interpreter::may_come(const Raised& failed) {
  constexpr std::string_view kNotFound = "No module named '";
  if (!failed.message.starts_with(kNotFound)) return false;
  const std::string_view name = std::string_view(failed.message).substr(kNotFound.size());
  return !may_be_elsewhere(top_of(name.substr(0, name.find('\'')))).empty();
}

// Where something else may have put another value in its place.
Ref Interpreter::plainly(Ref value) {
  if (!value->lacking) return value;
  if (value->type == Type::kNone) return none_;
  const int64_t number = static_cast<Int*>(value)->value;
  return value->type == Type::kBool ? boolean(number != 0) : integer(number);
}

Ref Interpreter::lacking_copy(Ref value, const Raised* error) {
  Ref copy = value->type == Type::kNone ? make<Value>(Type::kNone)
                                        : make<Int>(value->type, static_cast<Int*>(value)->value);
  copy->lacking = true;
  lacked_.emplace(copy, error);
  return copy;
}

// Names that the handler gives None or a truth value, and those that have kept such a value because
// the import came before what would have replaced it.
void Interpreter::mark_left_values(const Raised& caught, Block attempted, Block handler) {
  if (!started_ || !caught.failed_import || caught.doubted || in_doubt() ||
      !is_own_code(current_module()) || may_come(caught))
    return;
  const Raised* error = &lacks_.emplace_back(caught);
  const auto note = [&](const BlockFacts::Place& place) {
    Ref value = value_at(place);
    const bool is_left = value && !value->doubted && !value->lacking &&
                         (value->type == Type::kNone || value->type == Type::kBool);
    if (is_left) set_at(place, lacking_copy(value, error));
  };
  for (const auto& [place, given] : blocks_.of(handler).assigned)
    if (given) note(place);
  const BlockFacts& undone = blocks_.of(attempted);
  for (const auto& [place, given] : undone.assigned)
    if (Ref value = value_at(place); value && !is_constant(given, value)) note(place);
  for (const Stmt* statement : undone.imports)
    for (const Alias& alias : statement->aliases)
      note({top_of(alias.bound.empty() ? alias.name : alias.bound), {}});
}

// What find_spec says of a module that is not there.
Ref Interpreter::none_for_missing(const std::string& missing) {
  if (!started_ || !is_own_code(current_module())) return none_;
  if (!may_be_elsewhere(top_of(missing)).empty()) return opaque_;
  if (in_doubt()) return none_;
  raise("ModuleNotFoundError", fmt::format("No module named '{}'", missing));
  Raised error = *raised_;
  clear_raised();
  error.failed_import = true;
  return lacking_copy(none_, &lacks_.emplace_back(std::move(error)));
}

// The failed import without which a condition would not have this value.
const Raised* Interpreter::lacking_in(const Expr& condition, Ref value) {
  if (value->lacking) return lacked_.at(value);
  if (lacked_.empty() || condition.kind != ExprKind::kBool) return nullptr;
  // Each of the others has its part in it otherwise.
  if (truth(value) != (condition.op == Operator::kAnd)) return nullptr;
  for (const Expr* item : condition.items) {
    const Expr* name = item;
    while (name->kind == ExprKind::kUnary || name->kind == ExprKind::kCompare)
      name = name->items[0];
    const bool is_name = name->kind == ExprKind::kName && !current_module()->open;
    Ref part = is_name ? find_name(name->text) : nullptr;
    if (part && part->lacking) return lacked_.at(part);
  }
  return nullptr;
}

// What is asked of something that is lacking: whether it is there, mostly.
Ref Interpreter::follows_lacking(Ref answer, const Value* because) {
  if (!because->lacking || answer->lacking || answer->doubted || answer->type != Type::kBool)
    return answer;
  return lacking_copy(answer, lacked_.at(because));
}

// `except ImportError: return 1`, and the same behind `if yaml is None:`.
Ref Interpreter::returned_for_lack(Ref value) {
  const bool tells = value->type == Type::kNone || value->type == Type::kBool ||
                     (value->type == Type::kInt && static_cast<Int*>(value)->value != 0);
  if (!tells || value->doubted || value->lacking) return value;
  const Raised* behind = behind_here();
  if (!behind || !behind->failed_import || behind->doubted || in_doubt() ||
      !is_own_code(current_module()))
    return value;
  return lacking_copy(value, handles_here() ? &lacks_.emplace_back(*behind) : behind);
}

// `sys.exit(main())`, `assert yaml is not None`
void Interpreter::note_lack(Raised& raised, const Value* value) const {
  if (!value || !value->lacking || in_doubt()) return;
  raised.cause = text_of_error(*lacked_.at(value));
  raised.for_import = true;
}

Ref Interpreter::raise_lacking(const Value* value, std::string_view builtin, std::string message) {
  if (in_doubt()) return opaque_;
  raise_certain(builtin, std::move(message));
  note_lack(*raised_, value);
  return nullptr;
}

}  // namespace cohabit::python
