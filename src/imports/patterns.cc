// The match statement. Patterns are expressions of the same shape (parser_patterns.cc): a name is a
// capture, one with dots a value, a call a class, `|` an alternative, `:=` an `as`.
#include <algorithm>

#include "imports/interpreter.h"

namespace cohabit::python {
namespace {

// Whether it may be a mapping or a sequence that we do not know as one.
bool may_have_items(Ref value) {
  if (const auto* instance = as<Instance>(value, Type::kInstance))
    return instance->open || instance->of->open || !instance->of->bases.empty();
  return value->type == Type::kOpaque;
}

}  // namespace

Flow Interpreter::execute_match(const Stmt& statement) {
  Ref subject = evaluate(*statement.exprs[0]);
  if (!subject) return Flow::kRaise;
  for (size_t i = 0; i < statement.cases.size(); i++) {
    const Case& one = statement.cases[i];
    std::optional<bool> is_this = matches(*one.pattern, subject);
    if (raised_) return Flow::kRaise;
    if (!is_this) return skip_cases(statement, i);
    if (one.guard && *is_this) {
      Ref guard = evaluate(*one.guard);
      if (!guard) return Flow::kRaise;
      is_this = truth(guard);
      if (!is_this) return skip_cases(statement, i);
    }
    if (*is_this) return execute(one.body);
  }
  return Flow::kNext;
}

// Which case it is from the one on that could be, is not known.
Flow Interpreter::skip_cases(const Stmt& statement, size_t first) {
  for (size_t i = first; i < statement.cases.size(); i++)
    skip(statement.cases[i].body, statement.line, "match");
  return Flow::kNext;
}

// Nothing: not known. May raise.
std::optional<bool> Interpreter::matches(const Expr& pattern, Ref subject) {
  switch (pattern.kind) {
    case ExprKind::kName:
      if (pattern.text != "_") bind(pattern.text, subject);
      return true;
    case ExprKind::kNamed: {
      const auto is = matches(*pattern.items[0], subject);
      if (is.value_or(true)) bind(pattern.items[1]->text, subject);
      return is;
    }
    case ExprKind::kBinary:
      if (pattern.op == Operator::kBitOr) return matches_one_of(pattern, subject);
      return std::nullopt;  // a complex number
    case ExprKind::kNone:
    case ExprKind::kTrue:
    case ExprKind::kFalse:
      return compare(Operator::kIs, subject, evaluate(pattern));
    case ExprKind::kTuple:
    case ExprKind::kList:
      return matches_sequence(pattern, subject);
    case ExprKind::kDict:
      return matches_mapping(pattern, subject);
    case ExprKind::kCall:
      return matches_class(pattern, subject);
    default: {
      Ref value = evaluate(pattern);
      return value ? equal(subject, value) : std::nullopt;
    }
  }
}

std::optional<bool> Interpreter::matches_one_of(const Expr& pattern, Ref subject) {
  const auto left = matches(*pattern.items[0], subject);
  if (raised_ || left == std::optional<bool>(true)) return left;
  const auto right = matches(*pattern.items[1], subject);
  return right == std::optional<bool>(false) ? left : right;
}

std::optional<bool> Interpreter::matches_sequence(const Expr& pattern, Ref subject) {
  const auto* sequence = sequence_of(subject);
  if (!sequence || sequence->type == Type::kSet) {
    if (may_have_items(subject)) return std::nullopt;
    return false;
  }
  if (sequence->open) return std::nullopt;
  const std::span<const Expr* const> parts = pattern.items;
  const auto is_star = [](const Expr* part) { return part->kind == ExprKind::kStarred; };
  const auto star = std::find_if(parts.begin(), parts.end(), is_star);
  const auto before = static_cast<size_t>(star - parts.begin());
  const List& items = sequence->items;
  if (star == parts.end() ? items.size() != parts.size() : items.size() + 1 < parts.size())
    return false;
  std::optional<bool> all = true;
  const auto add = [&](const Expr* part, Ref item) {
    const auto is = matches(*part, item);
    if (all != std::optional<bool>(false) && is != std::optional<bool>(true)) all = is;
  };
  for (size_t i = 0; i < before; i++) add(parts[i], items[i]);
  if (star == parts.end()) return all;
  const size_t after = parts.size() - before - 1, rest = items.size() - before - after;
  add((*star)->items[0], list(std::span<const Ref>(items).subspan(before, rest)));
  for (size_t i = 0; i < after; i++) add(parts[before + 1 + i], items[before + rest + i]);
  return all;
}

std::optional<bool> Interpreter::matches_mapping(const Expr& pattern, Ref subject) {
  auto* dict = as<Dict>(subject, Type::kDict);
  if (!dict) {
    if (may_have_items(subject)) return std::nullopt;
    return false;
  }
  std::optional<bool> all = true;
  for (size_t i = 0; i + 1 < pattern.items.size(); i += 2) {
    if (!pattern.items[i]) {  // **rest
      bind(pattern.items[i + 1]->text, opaque());
      continue;
    }
    Ref key = evaluate(*pattern.items[i]);
    if (!key) return std::nullopt;
    Ref value = dict_get(dict, key);
    if (!value && !dict->open && is_key(key)) return false;
    const auto is = value ? matches(*pattern.items[i + 1], value) : std::nullopt;
    if (is == std::optional<bool>(false)) return false;
    if (!is) all = is;
  }
  return all;
}

// Of what stands in the parentheses only one value is known that a class of builtins is itself, and
// what has a name.
std::optional<bool> Interpreter::matches_class(const Expr& pattern, Ref subject) {
  Ref type = evaluate(*pattern.items[0]);
  if (!type) return std::nullopt;
  const auto is = is_instance(subject, type);
  if (is != std::optional<bool>(true)) return is;
  std::optional<bool> all = true;
  for (size_t i = 1; i < pattern.items.size(); i++) {
    const Expr& part = *pattern.items[i];
    std::optional<bool> one;
    if (part.kind == ExprKind::kKeyword) {
      bool raised = false;
      Ref value = find_attribute(subject, part.text, &raised);
      if (raised && !raised_is("AttributeError")) return std::nullopt;
      if (raised) clear_raised();
      one = value ? matches(*part.items[0], value) : std::optional(false);
    } else if (subject->type != Type::kInstance && pattern.items.size() == 2) {
      one = matches(part, subject);
    }
    if (one == std::optional<bool>(false)) return false;
    if (!one) all = one;
  }
  return all;
}

}  // namespace cohabit::python
