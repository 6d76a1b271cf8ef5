// What a program of the user goes on with where an import has failed: `yaml = None`, `HAS_TORCH =
// False`. Who uses that in place of the module, or refuses to work because of it, fails for want of
// the module.
#include <algorithm>
#include <utility>

#include "imports/interpreter.h"

namespace cohabit::python {

Interpreter::BehindLacking::BehindLacking(Interpreter& in, const Raised* error)
    : in_(in), is_behind_(error) {
  if (error) in_.behind_lacking_.push_back({error, in_.scope()});
}

Interpreter::BehindLacking::~BehindLacking() {
  if (is_behind_) in_.behind_lacking_.pop_back();
}

// Names that the handler gives None or a truth value, and those that have kept such a value because
// the import came before what would have replaced it.
void Interpreter::note_lacking(const Raised& caught, Block attempted, Block handler) {
  if (!started_ || !caught.failed_import || caught.doubted || frames_.back().doubt.any() ||
      !is_own_code(current_module()))
    return;
  const auto note = [&](const BlockFacts::Place& place) {
    Ref value = value_at(place);
    if (!value || value->doubted || value->lacking ||
        (value->type != Type::kNone && value->type != Type::kBool))
      return;
    Ref left = value->type == Type::kNone ? make<Value>(Type::kNone)
                                          : make<Int>(Type::kBool, static_cast<Int*>(value)->value);
    left->lacking = true;
    lacked_.emplace(left, caught);
    set_at(place, left);
  };
  for (const auto& [place, given] : blocks_.of(handler).assigned)
    if (given) note(place);
  for (const auto& [place, given] : blocks_.of(attempted).assigned)
    if (Ref value = value_at(place); value && !is_constant(given, value)) note(place);
}

// The failed import by which a condition has this truth, if it is that alone.
const Raised* Interpreter::lacking_in(const Expr& condition, bool truth) {
  if (lacked_.empty()) return nullptr;
  switch (condition.kind) {
    case ExprKind::kName:
    case ExprKind::kAttribute: {
      Ref value = value_named(condition);
      return value && value->lacking ? &lacked_.at(value) : nullptr;
    }
    case ExprKind::kUnary:
      return lacking_in(*condition.items[0], !truth);
    case ExprKind::kBool:
      // Each of the others has its part in it otherwise.
      if (truth != (condition.op == Operator::kAnd)) return nullptr;
      break;
    case ExprKind::kCompare:
      break;
    default:
      return nullptr;
  }
  for (const Expr* item : condition.items)
    if (const Raised* error = lacking_in(*item, truth)) return error;
  return nullptr;
}

Ref Interpreter::raise_lacking(const Value* value, std::string_view builtin, std::string message) {
  if (std::any_of(frames_.begin(), frames_.end(),
                  [](const Frame& frame) { return frame.doubt.any(); }))
    return opaque_;
  raise_certain(builtin, std::move(message));
  raised_->cause = text_of_error(lacked_.at(value));
  raised_->for_import = true;
  return nullptr;
}

}  // namespace cohabit::python
