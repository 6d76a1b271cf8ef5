// Expressions.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/secrets.h"
#include "imports/models.h"

namespace cohabit::python {
namespace {

constexpr int kDeepest = 400;

class Deeper {
 public:
  explicit Deeper(int& depth) : depth_(depth) { depth_++; }
  ~Deeper() { depth_--; }
  Deeper(const Deeper&) = delete;

 private:
  int& depth_;
};

std::optional<bool> decide(Operator op, int order) {
  switch (op) {
    case Operator::kLess:
      return order < 0;
    case Operator::kLessEqual:
      return order <= 0;
    case Operator::kGreater:
      return order > 0;
    case Operator::kGreaterEqual:
      return order >= 0;
    default:
      return std::nullopt;
  }
}

// Release parts and whether a pre-release follows, enough to order versions of packages.
std::vector<int64_t> version_key(std::string_view given) {
  const std::string text(given);
  std::vector<int64_t> key;
  size_t at = !text.empty() && text[0] == 'v' ? 1 : 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    char* end = nullptr;
    key.push_back(std::strtoll(text.c_str() + at, &end, 10));
    at = static_cast<size_t>(end - text.c_str());
    if (at >= text.size() || text[at] != '.') break;
    at++;
  }
  while (!key.empty() && key.back() == 0) key.pop_back();
  const std::string_view rest = std::string_view(text).substr(std::min(at, text.size()));
  const bool before = rest.starts_with("a") || rest.starts_with("b") || rest.starts_with("rc") ||
                      rest.starts_with("dev") || rest.starts_with(".dev");
  if (before) key.push_back(-1);
  return key;
}

int three_way(int64_t a, int64_t b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

int compare_versions(std::string_view a, std::string_view b) {
  const auto x = version_key(a), y = version_key(b);
  for (size_t i = 0; i < std::max(x.size(), y.size()); i++) {
    const int order = three_way(i < x.size() ? x[i] : 0, i < y.size() ? y[i] : 0);
    if (order) return order;
  }
  return 0;
}

std::optional<int64_t> arithmetic(Operator op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case Operator::kAdd:
      return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case Operator::kSubtract:
      return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case Operator::kMultiply:
      return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case Operator::kBitOr:
      return a | b;
    case Operator::kBitAnd:
      return a & b;
    case Operator::kBitXor:
      return a ^ b;
    case Operator::kFloorDivide:
      if (b <= 0 || a < 0) return std::nullopt;
      return a / b;
    case Operator::kModulo:
      if (b <= 0 || a < 0) return std::nullopt;
      return a % b;
    case Operator::kLeftShift:
      if (b < 0 || b > 61 || a < 0 || a > (int64_t{1} << (61 - b))) return std::nullopt;
      return a << b;
    case Operator::kRightShift:
      if (b < 0 || b > 63) return std::nullopt;
      return a >> b;
    default:
      return std::nullopt;
  }
}

}  // namespace

Ref Interpreter::evaluate(const Expr& expression) {
  const Deeper deeper(depth_);
  if (depth_ > kDeepest || is_full()) return opaque_;
  switch (expression.kind) {
    case ExprKind::kName:
      return evaluate_name(expression);
    case ExprKind::kNone:
      return none_;
    case ExprKind::kTrue:
      return true_;
    case ExprKind::kFalse:
      return false_;
    case ExprKind::kEllipsis:
    case ExprKind::kNumber:
      return opaque_;
    case ExprKind::kInteger:
      return integer(expression.integer);
    case ExprKind::kString:
      return stands_for_secret(expression.text) ? doubt(constant(expression.text))
                                                : constant(expression.text);
    case ExprKind::kBytes:
      return make<Str>(Type::kBytes, expression.text);
    case ExprKind::kJoined:
      return evaluate_joined(expression);
    case ExprKind::kFormatted:
      return evaluate(*expression.items[0]);
    case ExprKind::kTuple:
      return evaluate_sequence(expression, Type::kTuple);
    case ExprKind::kList:
      return evaluate_sequence(expression, Type::kList);
    case ExprKind::kSet:
      return evaluate_sequence(expression, Type::kSet);
    case ExprKind::kDict:
      return evaluate_dict(expression);
    case ExprKind::kAttribute: {
      Ref object = evaluate(*expression.items[0]);
      return object ? attribute(object, expression.text) : nullptr;
    }
    case ExprKind::kSubscript: {
      Ref object = evaluate(*expression.items[0]);
      if (!object) return nullptr;
      if (expression.items[1]->kind == ExprKind::kSlice)
        return evaluate_slice(object, *expression.items[1]);
      Ref key = evaluate(*expression.items[1]);
      Ref value = key ? subscript(object, key) : nullptr;
      if (!value) return nullptr;
      return key->doubted || object->doubted ? doubt(value) : plainly(value);
    }
    case ExprKind::kCall:
      return evaluate_call(expression);
    case ExprKind::kUnary:
      return evaluate_unary(expression);
    case ExprKind::kBinary: {
      Ref a = evaluate(*expression.items[0]);
      Ref b = a ? evaluate(*expression.items[1]) : nullptr;
      return b ? binary(expression.op, a, b) : nullptr;
    }
    case ExprKind::kBool:
      return evaluate_bool(expression);
    case ExprKind::kCompare:
      return evaluate_compare(expression);
    case ExprKind::kConditional: {
      Ref condition = evaluate(*expression.items[1]);
      if (!condition) return nullptr;
      const auto decided = truth(condition);
      if (!decided) {
        may_run_calls(expression);
        for (const size_t branch : {0, 2}) may_end(*expression.items[branch]);
        return opaque_;
      }
      if (condition->doubted) may_end(*expression.items[*decided ? 2 : 0]);
      Ref value = evaluate(*expression.items[*decided ? 0 : 2]);
      return value ? doubt(value, condition) : nullptr;
    }
    case ExprKind::kLambda:
      return lambda(expression);
    case ExprKind::kListComp:
    case ExprKind::kSetComp:
    case ExprKind::kDictComp:
    case ExprKind::kGenerator:
      return evaluate_comprehension(expression);
    case ExprKind::kNamed: {
      Ref value = evaluate(*expression.items[1]);
      return value && assign(*expression.items[0], value) ? value : nullptr;
    }
    case ExprKind::kAwait: {
      Ref value = evaluate(*expression.items[0]);
      if (!value) return nullptr;
      Instance* task = as<Instance>(value, Type::kInstance);
      return task ? await(task) : opaque_;
    }
    case ExprKind::kYield:
    case ExprKind::kYieldFrom:
      return evaluate_yield(expression);
    default:
      return opaque_;
  }
}

Ref Interpreter::find_name(std::string_view name) {
  Scope* current = scope();
  const uint32_t hash = hash_of_text(name);
  const auto find = [name, hash](Namespace& names) -> Ref {
    const Ref* found = names.find(name, hash);
    return found ? *found : nullptr;
  };
  if (Ref value = find(*current->names)) return value;
  for (Scope* outer = current->outer; outer; outer = outer->outer)
    if (Ref value = find(*outer->names)) return value;
  if (current->module)
    if (Ref value = find(current->module->names)) return value;
  return find(builtins_);
}

namespace {

// Names of builtins that have no value here, of any of Python 3.8 to 3.13, sorted.
constexpr std::string_view kOtherBuiltins[] = {"BlockingIOError",
                                               "BrokenPipeError",
                                               "ChildProcessError",
                                               "ConnectionAbortedError",
                                               "ConnectionError",
                                               "ConnectionRefusedError",
                                               "ConnectionResetError",
                                               "Ellipsis",
                                               "FileExistsError",
                                               "FloatingPointError",
                                               "InterruptedError",
                                               "IsADirectoryError",
                                               "NotADirectoryError",
                                               "NotImplemented",
                                               "ProcessLookupError",
                                               "PythonFinalizationError",
                                               "TabError",
                                               "TimeoutError",
                                               "UnicodeTranslateError",
                                               "_IncompleteInputError",
                                               "__build_class__",
                                               "__doc__",
                                               "__loader__",
                                               "__name__",
                                               "__spec__",
                                               "abs",
                                               "aiter",
                                               "anext",
                                               "ascii",
                                               "bin",
                                               "breakpoint",
                                               "chr",
                                               "copyright",
                                               "credits",
                                               "delattr",
                                               "divmod",
                                               "format",
                                               "hash",
                                               "help",
                                               "hex",
                                               "id",
                                               "input",
                                               "license",
                                               "oct",
                                               "pow",
                                               "round",
                                               "sum"};

}  // namespace

// `try: x` with `except NameError` asks whether there is an x, and the answer is no where nothing
// is unknown about the module's names.
bool Interpreter::is_known_to_be_unbound(std::string_view name) {
  const Module* module = current_module();
  if (!module || module->may_have_more() || catching_.empty()) return false;
  const Expected& expected = catching_.back();
  const auto& errors = expected.errors;
  if (expected.module_depth != module_depth_ ||
      std::find(errors.begin(), errors.end(), "NameError") == errors.end())
    return false;
  if (std::binary_search(std::begin(kOtherBuiltins), std::end(kOtherBuiltins), name)) return false;
  const Module* builtins = as<Module>(loaded_module("builtins"), Type::kModule);
  return !builtins || !builtins->names.contains(name);
}

Ref Interpreter::evaluate_name(const Expr& expression) {
  if (Ref value = find_name(expression.text))
    return value->lacking && current_module()->open ? plainly(value) : value;
  if (is_known_to_be_unbound(expression.text))
    return raise("NameError", fmt::format("name '{}' is not defined", expression.text));
  Module* module = current_module();
  // A name that nobody bound may come from code that was not followed; only in a module without
  // such gaps would it be a NameError, and that is not worth the risk of a wrong one.
  return module ? opaque(module->spec.name, expression.text) : opaque_;
}

Ref Interpreter::evaluate_joined(const Expr& expression) {
  std::string text;
  bool known = true, doubted = false;
  for (const Expr* item : expression.items) {
    Ref value = evaluate(*item);
    if (!value) return nullptr;
    if (item->kind == ExprKind::kFormatted && !item->text.empty() && item->text != "!s") {
      known = false;
      continue;
    }
    value = shown(value);
    if (!value) return nullptr;
    doubted |= value->doubted;
    const auto part = display(value);
    if (part) text += *part;
    known &= part.has_value();
  }
  if (!known) return opaque_;
  return doubted ? doubt(string(text)) : string(text);
}

Ref Interpreter::evaluate_sequence(const Expr& expression, Type type) {
  auto* result = make<Sequence>(type);
  for (const Expr* item : expression.items) {
    Ref value = evaluate(item->kind == ExprKind::kStarred ? *item->items[0] : *item);
    if (!value) return nullptr;
    if (item->kind != ExprKind::kStarred) {
      result->items.push_back(value);
      continue;
    }
    value = iterated(value);
    if (!value) return nullptr;
    if (const auto items = elements(value)) {
      append(result, *items);
      result->open |= holds_more(value);
    } else {
      result->open = true;
    }
  }
  if (type != Type::kSet) return result;
  Sequence* set = list({}, Type::kSet);
  set->open = result->open;
  find_model("set.update")->function(*this, set, Arguments(arena_, {result}));
  return set;
}

Ref Interpreter::evaluate_dict(const Expr& expression) {
  auto* result = make<Dict>();
  for (size_t i = 0; i + 1 < expression.items.size(); i += 2) {
    Ref key = expression.items[i] ? evaluate(*expression.items[i]) : nullptr;
    if (expression.items[i] && !key) return nullptr;
    Ref value = evaluate(*expression.items[i + 1]);
    if (!value) return nullptr;
    if (key) {
      dict_set(result, key, value);
    } else if (Dict* other = as<Dict>(value, Type::kDict)) {
      for (const auto& [k, v] : other->items) dict_set(result, k, v);
      result->open |= other->open;
      result->of_environment |= other->of_environment;
    } else {
      result->open = true;
    }
  }
  return result;
}

Ref Interpreter::evaluate_unary(const Expr& expression) {
  Ref value = evaluate(*expression.items[0]);
  if (!value) return nullptr;
  if (expression.op == Operator::kNot) {
    const auto decided = truth(value);
    return decided ? follows_lacking(doubt(boolean(!*decided), value), value) : opaque_;
  }
  if (Int* number = as<Int>(value, Type::kInt)) {
    if (expression.op == Operator::kMinus) return integer(-number->value);
    if (expression.op == Operator::kPlus) return value;
    if (expression.op == Operator::kInvert) return integer(~number->value);
  }
  return opaque_;
}

// Where an operand that is not known decides whether another one is evaluated at all, a failure in
// that which nobody expects says that it is not.
bool Interpreter::forgive_operand() {
  if (!is_unawaited_failure() || raised_->refused || raised_->left || raised_->of_consumer)
    return false;
  clear_raised();
  undecided("condition, and an import that fails behind it");
  return true;
}

Ref Interpreter::evaluate_bool(const Expr& expression) {
  const bool wanted = expression.op == Operator::kOr;
  bool sure = true;
  Ref reason = none_;
  for (size_t i = 0; i < expression.items.size(); i++) {
    Ref value = evaluate(*expression.items[i]);
    if (!value && !sure && (forgive_exit() || forgive_operand())) return opaque_;
    if (!value) return nullptr;
    value = doubt(value, reason);
    reason = value;
    const auto decided = truth(value);
    if (decided && *decided == wanted) {
      // Opaque or True: whatever the first part is, the whole is true.
      if (sure || !wanted) return value;
      return value->doubted ? opaque_ : true_;
    }
    if (!decided) {
      sure = false;
      // What stands behind may have effects that only happen one way: it is looked at as well.
      continue;
    }
    if (i + 1 == expression.items.size()) return sure ? value : opaque_;
  }
  return opaque_;
}

// By a method of the first one's class too, which may raise.
std::optional<bool> Interpreter::compare_by_methods(Operator op, Ref a, Ref b) {
  Ref method = own_operator(a, op);
  const bool is_negated = !method && op == Operator::kNotEqual;
  if (is_negated) method = own_method(a, "__eq__");
  if (!method) return compare(op, a, b);
  Ref result = call(method, Arguments(arena_, {b}));
  const auto is = result ? truth(result) : std::nullopt;
  return is ? std::optional(*is != is_negated) : std::nullopt;
}

Ref Interpreter::evaluate_compare(const Expr& expression) {
  Ref left = evaluate(*expression.items[0]);
  if (!left) return nullptr;
  bool sure = true, doubted = false;
  for (size_t i = 0; i < expression.operators.size(); i++) {
    Ref right = evaluate(*expression.items[i + 1]);
    if (!right) return nullptr;
    const auto decided = compare_by_methods(expression.operators[i], left, right);
    if (raised_) return nullptr;
    doubted |= left->doubted || right->doubted;
    const Value* lacking = left->lacking ? left : right;
    const bool is_last = decided && (!*decided || expression.operators.size() == 1);
    if (is_last)
      return follows_lacking(doubted ? doubt(boolean(*decided)) : boolean(*decided), lacking);
    sure &= decided.has_value();
    left = right;
  }
  if (!sure) return opaque_;
  return doubted ? doubt(true_) : true_;
}

namespace {

// In whatever order they were filled; each item is held against each.
std::optional<bool> same_set(Interpreter& in, Sequence* a, Sequence* b) {
  constexpr size_t kMostCompared = 1000;
  if (a->items.size() > kMostCompared || b->items.size() > kMostCompared) return std::nullopt;
  const auto there = is_subset(in, *a, b), back = is_subset(in, *b, a);
  if (there == std::optional(false) || back == std::optional(false)) return false;
  return there && back ? std::optional(true) : std::nullopt;
}

}  // namespace

std::optional<bool> Interpreter::equal(Ref a, Ref b) {
  a = plain_text(a, {"__eq__"});
  b = plain_text(b, {"__eq__"});
  if (a == b) return a->type == Type::kOpaque ? std::nullopt : std::optional(true);
  if (a->type == Type::kOpaque || b->type == Type::kOpaque) return std::nullopt;
  const auto number = [](Ref value) {
    return value->type == Type::kInt || value->type == Type::kBool
               ? std::optional(static_cast<Int*>(value)->value)
               : std::nullopt;
  };
  if (a->type == Type::kNone && b->type == Type::kNone) return true;
  if (const auto x = number(a), y = number(b); x && y) return *x == *y;
  if (a->type == Type::kVersion || b->type == Type::kVersion) {
    if (a->type != b->type) return std::nullopt;
    return compare_versions(static_cast<Str*>(a)->text, static_cast<Str*>(b)->text) == 0;
  }
  if (const std::string_view *x = text_of(a), *y = text_of(b); x && y) return *x == *y;
  if (a->type == Type::kBytes && b->type == Type::kBytes)
    return static_cast<Str*>(a)->text == static_cast<Str*>(b)->text;
  Sequence *x = sequence_of(a), *y = sequence_of(b);
  if (x && y && x->type == Type::kSet && y->type == Type::kSet) return same_set(*this, x, y);
  if (x && y && x->type != y->type) return std::nullopt;  // views, ranges are here lists too
  if (x && y) {
    if (x->open || y->open) return std::nullopt;
    if (x->items.size() != y->items.size()) return false;
    bool sure = true;
    for (size_t i = 0; i < x->items.size(); i++) {
      const bool in_doubt = x->items[i]->doubted || y->items[i]->doubted;
      const auto same = in_doubt ? std::nullopt : equal(x->items[i], y->items[i]);
      if (same && !*same) return false;
      sure &= same.has_value();
    }
    return sure ? std::optional(true) : std::nullopt;
  }
  const Instance *one = as<Instance>(a, Type::kInstance), *other = as<Instance>(b, Type::kInstance);
  const auto decides = [&](const Instance* instance) {
    return instance && !has_identity(instance->of);
  };
  if (decides(one) || decides(other)) return std::nullopt;
  if (one || other) return false;
  if (a->type == Type::kDict && b->type == Type::kDict) return std::nullopt;
  return false;
}

namespace {

struct OperatorMethod {
  Operator op;
  std::string_view name;
};

constexpr OperatorMethod kComparing[] = {
    {Operator::kEqual, "__eq__"},   {Operator::kNotEqual, "__ne__"},
    {Operator::kLess, "__lt__"},    {Operator::kLessEqual, "__le__"},
    {Operator::kGreater, "__gt__"}, {Operator::kGreaterEqual, "__ge__"},
};
constexpr OperatorMethod kComputing[] = {
    {Operator::kAdd, "__add__"},      {Operator::kSubtract, "__sub__"},
    {Operator::kMultiply, "__mul__"}, {Operator::kDivide, "__truediv__"},
    {Operator::kModulo, "__mod__"},   {Operator::kBitOr, "__or__"},
    {Operator::kBitAnd, "__and__"},
};

std::string_view method_named(std::span<const OperatorMethod> methods, Operator op) {
  const auto found = std::find_if(methods.begin(), methods.end(),
                                  [op](const OperatorMethod& one) { return one.op == op; });
  return found == methods.end() ? std::string_view() : found->name;
}

}  // namespace

// A method of the object's own class, in Python; null: it has none.
Ref Interpreter::own_method(Ref object, std::string_view name) {
  auto* instance = as<Instance>(object, Type::kInstance);
  if (!instance || name.empty()) return nullptr;
  Ref method = class_attribute(instance->of, name);
  return as<Function>(method, Type::kFunction) ? bind_method(method, instance, instance->of)
                                               : nullptr;
}

// The method of the object's class, in Python, that stands for the operator (`a += b`: in place).
Ref Interpreter::own_operator(Ref object, Operator op, bool in_place) {
  if (object->type != Type::kInstance) return nullptr;
  for (const std::span<const OperatorMethod> methods :
       {std::span<const OperatorMethod>(kComparing), std::span<const OperatorMethod>(kComputing)}) {
    const std::string_view name = method_named(methods, op);
    if (name.empty()) continue;
    return own_method(object, in_place ? fmt::format("__i{}", name.substr(2)) : std::string(name));
  }
  return nullptr;
}

std::optional<bool> Interpreter::compare(Operator op, Ref a, Ref b) {
  switch (op) {
    case Operator::kEqual:
      return equal(a, b);
    case Operator::kNotEqual: {
      const auto same = equal(a, b);
      return same ? std::optional(!*same) : std::nullopt;
    }
    case Operator::kIs:
    case Operator::kIsNot: {
      if (a->type == Type::kOpaque || b->type == Type::kOpaque) return std::nullopt;
      const bool is_value =
          a->type == Type::kInt || a->type == Type::kBool || a->type == Type::kNone;
      const bool same =
          a == b || (is_value && a->type == b->type && equal(a, b) == std::optional(true));
      // A class may give the same object twice, and does so with the members of an enumeration.
      const auto may_be_shared = [this](Ref value) {
        const auto* instance = as<Instance>(value, Type::kInstance);
        return instance && (is_enumeration(instance->of) ||
                            (instance->open && class_attribute(instance->of, "__new__")));
      };
      if (!same && (may_be_shared(a) || may_be_shared(b))) return std::nullopt;
      return same == (op == Operator::kIs);
    }
    case Operator::kIn:
      return contains(b, a);
    case Operator::kNotIn: {
      const auto in = contains(b, a);
      return in ? std::optional(!*in) : std::nullopt;
    }
    default:
      break;
  }
  a = plain_text(a, {"__lt__", "__le__", "__gt__", "__ge__"});
  b = plain_text(b, {"__lt__", "__le__", "__gt__", "__ge__"});
  if (a->type == Type::kVersion || b->type == Type::kVersion) {
    const std::string_view* x =
        a->type == Type::kVersion ? &static_cast<Str*>(a)->text : text_of(a);
    const std::string_view* y =
        b->type == Type::kVersion ? &static_cast<Str*>(b)->text : text_of(b);
    if (!x || !y) return std::nullopt;
    return decide(op, compare_versions(*x, *y));
  }
  const auto is_number = [](Ref v) { return v->type == Type::kInt || v->type == Type::kBool; };
  if (is_number(a) && is_number(b))
    return decide(op, three_way(static_cast<Int*>(a)->value, static_cast<Int*>(b)->value));
  if (const std::string_view *x = text_of(a), *y = text_of(b); x && y)
    return decide(op, x->compare(*y));
  Sequence *x = as<Sequence>(a, Type::kTuple), *y = as<Sequence>(b, Type::kTuple);
  if (!x) x = as<Sequence>(a, Type::kList);
  if (!y) y = as<Sequence>(b, Type::kList);
  if (!x || !y) return std::nullopt;
  for (size_t i = 0; i < std::min(x->items.size(), y->items.size()); i++) {
    const auto same = equal(x->items[i], y->items[i]);
    if (!same) return std::nullopt;
    if (!*same) return compare(op, x->items[i], y->items[i]);
  }
  if (x->open || y->open) return std::nullopt;
  return decide(
      op, three_way(static_cast<int64_t>(x->items.size()), static_cast<int64_t>(y->items.size())));
}

std::optional<bool> Interpreter::contains(Ref container, Ref item) {
  container = plain_text(container, {"__contains__"});
  if (const std::string_view* text = text_of(container)) {
    const std::string_view* part = text_of(plain_text(item, {}));
    return part ? std::optional(text->find(*part) != std::string::npos) : std::nullopt;
  }
  if (Dict* dict = as<Dict>(container, Type::kDict)) {
    if (!is_key(item)) return std::nullopt;
    observe(dict, item);
    if (dict_get(dict, item)) return dict->may_lack ? std::nullopt : std::optional(true);
    // `"x" in globals()`
    if (const std::string_view* name = text_of(item);
        name && dict->variables_of && !name->starts_with("__")) {
      if (dict->variables_of->names.contains(*name)) return true;
      if (!dict->variables_of->may_have_more()) return false;
    }
    return dict->open ? std::nullopt : std::optional(false);
  }
  if (Instance* instance = as<Instance>(container, Type::kInstance)) {
    Ref method = class_attribute(instance->of, "__contains__");
    if (method) method = bind_method(method, instance, instance->of);
    if (!method && !instance->of->module)
      method = method_of(instance->of->name, "__contains__", instance);
    if (method) {
      if (Ref result = call(method, Arguments(arena_, {item}))) return truth(result);
      clear_raised();
      return std::nullopt;
    }
  }
  if (container->type == Type::kIterator) return std::nullopt;
  const auto items = elements(container);
  if (!items) return std::nullopt;
  Sequence* sequence = sequence_of(container);
  bool sure = !(sequence && sequence->open);
  for (Ref one : *items) {
    const auto same = equal(one, item);
    if (same && *same && !one->doubted)
      return sequence && sequence->may_lack ? std::nullopt : std::optional(true);
    sure &= same.has_value() && !one->doubted;
  }
  return sure ? std::optional(false) : std::nullopt;
}

std::optional<bool> Interpreter::truth(Ref value) {
  switch (value->type) {
    case Type::kOpaque:
    case Type::kVersion:
      return std::nullopt;
    case Type::kNone:
      return false;
    case Type::kBool:
    case Type::kInt:
      return static_cast<Int*>(value)->value != 0;
    case Type::kStr:
    case Type::kBytes:
      return !static_cast<Str*>(value)->text.empty();
    case Type::kTuple:
    case Type::kList:
    case Type::kSet: {
      auto* sequence = static_cast<Sequence*>(value);
      if (!sequence->items.empty()) return sequence->may_lack ? std::nullopt : std::optional(true);
      return sequence->open ? std::nullopt : std::optional(false);
    }
    case Type::kDict: {
      auto* dict = static_cast<Dict*>(value);
      if (!dict->items.empty()) return dict->may_lack ? std::nullopt : std::optional(true);
      return dict->open ? std::nullopt : std::optional(false);
    }
    case Type::kInstance: {
      auto* instance = static_cast<Instance*>(value);
      if (instance->is_true) return true;
      if (is_open(instance->of)) return std::nullopt;
      for (const char* name : {"__bool__", "__len__"})
        if (Ref method = class_attribute(instance->of, name)) {
          Ref result = call(bind_method(method, instance, instance->of), {});
          if (!result) {
            clear_raised();
            return std::nullopt;
          }
          // Others are refused.
          const bool is_number = result->type == Type::kBool || result->type == Type::kInt;
          return is_number ? truth(result) : std::nullopt;
        }
      if (instance->text) return truth(instance->text);
      if (derives_from(instance->of, builtin_class("str"))) return std::nullopt;
      return true;
    }
    default:
      return true;
  }
}

Ref Interpreter::binary(Operator op, Ref a, Ref b) {
  if (Ref method = own_operator(a, op)) return call(method, Arguments(arena_, {b}));
  if (op == Operator::kBitOr && refuse_union(a, b)) return nullptr;
  if (a->doubted || b->doubted) {
    Ref result = compute(op, a, b);
    return result ? doubt(result) : nullptr;
  }
  return compute(op, a, b);
}

// "-" * 2
Ref Interpreter::repeated(std::string_view text, int64_t times) {
  constexpr size_t kMost = 4096;
  if (times > 0 && text.size() > kMost / static_cast<size_t>(times)) return opaque_;
  std::string result;
  for (int64_t i = 0; i < times && !text.empty(); i++) result += text;
  return string(result);
}

Ref Interpreter::compute(Operator op, Ref a, Ref b) {
  if (op == Operator::kDivide && a->type == Type::kPath) {
    const std::string_view* part = text_of(b);
    if (!part) return opaque_;
    const std::string_view base = static_cast<Str*>(a)->text;
    if (part->starts_with("/")) return path(*part);
    return path(fmt::format("{}{}{}", base, base.ends_with("/") ? "" : "/", *part));
  }
  if (op == Operator::kAdd && a->type == Type::kStr && b->type == Type::kStr)
    return string(fmt::format("{}{}", static_cast<Str*>(a)->text, static_cast<Str*>(b)->text));
  const bool is_number_or_none = b->type == Type::kInt || b->type == Type::kNone;
  if (op == Operator::kAdd && a->type == Type::kStr && is_number_or_none && expects("TypeError"))
    return raise("TypeError", "can only concatenate str to str");
  if (op == Operator::kModulo && a->type == Type::kStr) {
    observe_all(as<Dict>(b, Type::kDict));
    const ModelRow* format = find_model("str.__mod__");
    return format ? format->function(*this, a, Arguments(arena_, {a, b})) : opaque_;
  }
  const auto is_number = [](Ref v) { return v->type == Type::kInt || v->type == Type::kBool; };
  if (is_number(a) && is_number(b)) {
    const bool divides =
        op == Operator::kDivide || op == Operator::kFloorDivide || op == Operator::kModulo;
    if (divides && static_cast<Int*>(b)->value == 0 && expects("ZeroDivisionError"))
      return raise("ZeroDivisionError", "division by zero");
    const auto result = arithmetic(op, static_cast<Int*>(a)->value, static_cast<Int*>(b)->value);
    return result ? integer(*result) : opaque_;
  }
  if (op == Operator::kMultiply && (is_number(a) || is_number(b)))
    if (Str* text = as<Str>(is_number(a) ? b : a, Type::kStr))
      return repeated(text->text, static_cast<Int*>(is_number(a) ? a : b)->value);
  Sequence *x = sequence_of(a), *y = sequence_of(b);
  if (op == Operator::kMultiply && (x ? is_number(b) : y && is_number(a))) {
    const int64_t times = static_cast<Int*>(x ? b : a)->value;
    Sequence* source = x ? x : y;
    auto* result = make<Sequence>(source->type);
    result->open = source->open || times > 64;
    for (int64_t i = 0; i < std::min<int64_t>(times, 64); i++) append(result, source->items);
    return result;
  }
  if (op == Operator::kBitOr && x && y && x->type == Type::kSet && y->type == Type::kSet)
    return find_model("set.union")->function(*this, a, Arguments(arena_, {b}));
  if (op == Operator::kBitOr && a->type == Type::kDict && b->type == Type::kDict) {
    auto* result = make<Dict>();
    for (Ref one : {a, b}) dict_update(result, one);
    return result;
  }
  if (op == Operator::kAdd || op == Operator::kBitOr) {
    if (x || (y && a->type == Type::kOpaque)) {
      auto* result = make<Sequence>(x ? x->type : y->type);
      if (x) append(result, x->items);
      result->open = !x || !y || x->open || y->open;
      if (y) append(result, y->items);
      return result;
    }
  }
  return opaque_;
}

std::optional<std::span<const Ref>> Interpreter::elements(Ref value) {
  if (Sequence* sequence = sequence_of(value)) {
    if (sequence->open && sequence->items.empty()) return std::nullopt;
    return sequence->items;
  }
  if (Dict* dict = as<Dict>(value, Type::kDict)) {
    observe_all(dict);
    if (dict->open && dict->items.empty()) return std::nullopt;
    auto* keys = list({});
    for (const auto& [key, item] : dict->items) keys->items.push_back(key);
    return keys->items;
  }
  if (value && value->type == Type::kStr) {
    const std::string_view text = static_cast<Str*>(value)->text;
    if (text.size() > 256) return std::nullopt;
    auto* letters = list({});
    for (size_t i = 0; i < text.size(); i++) letters->items.push_back(constant(text.substr(i, 1)));
    return letters->items;
  }
  if (Iterator* iterator = as<Iterator>(value, Type::kIterator)) {
    const Sequence* all = collect(iterator);
    generator_raised_ |= !all;
    if (!all || all->open) return std::nullopt;
    return take_rest(iterator);
  }
  if (Instance* points = as<Instance>(value, Type::kInstance);
      points && points->of == builtin_class("EntryPoints"))
    return elements(points->names.get("_all"));
  return std::nullopt;
}

Ref Interpreter::evaluate_slice(Ref object, const Expr& slice) {
  std::array<std::optional<int64_t>, 3> bounds;
  for (size_t i = 0; i < 3 && i < slice.items.size(); i++) {
    if (!slice.items[i]) continue;
    Ref value = evaluate(*slice.items[i]);
    if (!value) return nullptr;
    if (value->type == Type::kNone) continue;
    Int* number = as<Int>(value, Type::kInt);
    if (!number) return opaque_;
    bounds[i] = number->value;
  }
  const std::string_view* text = object->type == Type::kStr ? text_of(object) : nullptr;
  Sequence* sequence = sequence_of(object);
  if ((!text && !sequence) || (sequence && sequence->open)) return opaque_;
  const auto size = static_cast<int64_t>(text ? text->size() : sequence->items.size());
  const int64_t step = bounds[2].value_or(1);
  if (step != 1 && step != -1) return opaque_;
  const auto place = [size](std::optional<int64_t> at, int64_t otherwise) {
    if (!at) return otherwise;
    return std::clamp(*at < 0 ? *at + size : *at, int64_t{0}, size);
  };
  if (step == -1 && (bounds[0] || bounds[1])) return opaque_;
  const int64_t begin = place(bounds[0], 0), end = std::max(begin, place(bounds[1], size));
  if (text) {
    std::string part(text->substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
    if (step == -1) std::reverse(part.begin(), part.end());
    return string(part);
  }
  const std::span<const Ref> all = sequence->items;
  Sequence* part = list(all.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
                        sequence->type);
  if (step == -1) std::reverse(part->items.begin(), part->items.end());
  return part;
}

Ref Interpreter::lambda(const Expr& expression) {
  auto* function = make<Function>();
  function->name = "<lambda>";
  function->lambda = &expression;
  function->parameters = expression.parameters;
  function->module = current_module();
  function->outer = capture(scope());
  for (const Parameter& parameter : expression.parameters) {
    Ref value = parameter.initial ? evaluate(*parameter.initial) : nullptr;
    if (parameter.initial && !value) return nullptr;
    function->defaults.push_back(value);
  }
  return function;
}

namespace {

// globals()
bool asks_globals(const Expr& expression) {
  return expression.kind == ExprKind::kCall && expression.items.size() == 1 &&
         expression.items[0]->kind == ExprKind::kName && expression.items[0]->text == "globals";
}

}  // namespace

bool Interpreter::comprehend(const Expr& expression, size_t clause, Sequence* result, Dict* dict) {
  const bool is_dict = expression.kind == ExprKind::kDictComp;
  const size_t first = is_dict ? 2 : 1;
  if (first + clause == expression.items.size()) {
    Ref element = evaluate(*expression.items[0]);
    if (!element) return false;
    if (!is_dict) {
      result->items.push_back(element);
      return true;
    }
    Ref value = evaluate(*expression.items[1]);
    if (!value) return false;
    dict_set(dict, element, value);
    return true;
  }
  const Expr& part = *expression.items[first + clause];
  Module* module = current_module();
  const bool was_open = module && module->open;
  Ref iterable = evaluate(*part.items[1]);
  if (!iterable) return false;
  if (module && asks_globals(*part.items[1])) module->open = was_open;  // nothing is written to it
  iterable = iterated(iterable);
  if (!iterable) return false;
  const auto items = elements(iterable);
  Sequence* source = sequence_of(iterable);
  if (!items || (source && source->open)) result->open = dict->open = true;
  if (!items) return true;
  size_t rounds = 0;
  for (Ref item : *items) {
    steps_++;
    if (++rounds > kMostRounds || exhausted()) return true;
    if (!assign(*part.items[0], item)) return false;
    bool take = true;
    for (size_t i = 2; i < part.items.size() && take; i++) {
      Ref condition = evaluate(*part.items[i]);
      if (!condition) return false;
      const auto decided = truth(condition);
      if (!decided) result->open = dict->open = true;
      take = decided.value_or(false);
    }
    if (take && !comprehend(expression, clause + 1, result, dict)) return false;
  }
  return true;
}

// A `:=` in a comprehension binds a name outside of it. How far a generator gets is not known here.
void Interpreter::bind_named(const Expr& expression, const Scope& inside, bool is_generator) {
  for (const Expr* item : expression.items) {
    if (!item || item->kind == ExprKind::kLambda) continue;
    bind_named(*item, inside, is_generator);
    if (item->kind != ExprKind::kNamed) continue;
    const std::string_view name = item->items[0]->text;
    Ref value = is_generator ? nullptr : inside.names->get(name);
    if (value || !find_name(name)) bind(name, value ? value : opaque());
  }
}

Ref Interpreter::evaluate_comprehension(const Expr& expression) {
  auto* result = make<Sequence>(expression.kind == ExprKind::kSetComp ? Type::kSet : Type::kList);
  auto* dict = make<Dict>();
  const RunningScope inner(*this);
  inner->module = current_module();
  inner->outer = scope()->is_module() ? nullptr : scope();
  inner->owner = scope()->owner;
  inner->self = scope()->self;
  frames_.push_back({inner.get(), frames_.back().line});
  std::optional<Early> early;
  if (expression.kind == ExprKind::kGenerator) early.emplace(*this);
  const bool fine = comprehend(expression, 0, result, dict);
  leave_frame();
  if (!fine) return nullptr;
  bind_named(expression, *inner.get(), expression.kind == ExprKind::kGenerator);
  return expression.kind == ExprKind::kDictComp ? static_cast<Ref>(dict) : result;
}

bool Interpreter::gather_arguments(const Expr& expression, Arguments& arguments) {
  for (size_t i = 1; i < expression.items.size(); i++) {
    const Expr& item = *expression.items[i];
    const bool wrapped = item.kind == ExprKind::kStarred || item.kind == ExprKind::kKeyword;
    Ref value = evaluate(wrapped ? *item.items[0] : item);
    if (!value) return false;
    if (item.kind == ExprKind::kStarred) {
      value = iterated(value);
      if (!value) return false;
      const auto items = elements(value);
      if (items && arguments.positional.size() + items->size() <= kMostItems)
        arguments.positional.insert(arguments.positional.end(), items->begin(), items->end());
      Sequence* source = sequence_of(value);
      arguments.open |= !items || (source && source->open);
    } else if (item.kind != ExprKind::kKeyword) {
      arguments.positional.push_back(value);
    } else if (!item.text.empty()) {
      arguments.keywords.emplace_back(item.text, value);
    } else if (Dict* dict = as<Dict>(value, Type::kDict)) {
      observe_all(dict);
      for (const auto& [key, entry] : dict->items)
        if (const std::string_view* name = text_of(key))
          arguments.keywords.emplace_back(*name, entry);
      arguments.open |= dict->open;
    } else {
      arguments.open = true;
    }
  }
  return true;
}

Ref Interpreter::evaluate_call(const Expr& expression) {
  Ref callee = evaluate(*expression.items[0]);
  if (!callee) return nullptr;
  const CallArguments arguments(*this);
  if (!gather_arguments(expression, *arguments)) return nullptr;
  const uint32_t line = frames_.back().line;
  frames_.back().line = expression.line;
  Ref result = call(callee, *arguments);
  frames_.back().line = line;
  return result;
}

}  // namespace cohabit::python
