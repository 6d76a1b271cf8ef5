#include "imports/block_facts.h"

#include <algorithm>
#include <optional>

namespace cohabit::python {
namespace {

// Whether code makes names that its text does not show.
bool makes_names(const Expr* expression) {
  if (!expression) return false;
  if (expression->kind == ExprKind::kName)
    for (const char* name : {"globals", "setattr", "exec", "vars", "locals"})
      if (expression->text == name) return true;
  return std::any_of(expression->items.begin(), expression->items.end(), makes_names);
}

bool is_call_of(const Expr& expression, std::initializer_list<std::string_view> functions) {
  return expression.kind == ExprKind::kCall && expression.items[0]->kind == ExprKind::kName &&
         std::find(functions.begin(), functions.end(), expression.items[0]->text) !=
             functions.end();
}

// `importlib.import_module(x)`, `__import__(x)`
bool imports_by_name(const Expr* expression) {
  if (!expression || expression->kind == ExprKind::kLambda) return false;
  if (expression->kind == ExprKind::kCall)
    for (const char* name : {"import_module", "__import__"})
      if (expression->items[0] && expression->items[0]->text == name) return true;
  return std::any_of(expression->items.begin(), expression->items.end(), imports_by_name);
}

// `setattr(x, ...)`, where x is not the object that the function belongs to.
bool gives_attribute(const Expr& expression) {
  if (!is_call_of(expression, {"setattr"})) return false;
  const Expr* owner = expression.items.size() > 1 ? expression.items[1] : nullptr;
  const bool is_own =
      owner && owner->kind == ExprKind::kName && (owner->text == "self" || owner->text == "cls");
  return !is_own;
}

// Of code inside a function: only what gives names to others than its own object.
bool makes_names_elsewhere(const Expr* expression) {
  if (!expression) return false;
  if (gives_attribute(*expression) || is_call_of(*expression, {"globals"})) return true;
  return std::any_of(expression->items.begin(), expression->items.end(), makes_names_elsewhere);
}

// Whether what globals() gives is only asked there: `globals().get(x)`, `globals()[x]`,
// `x in globals()`, `dict(globals())`, and not written to, or let go.
bool only_asks(const Expr* above, bool is_target) {
  static constexpr std::string_view kWriters[] = {"update", "setdefault", "__setitem__"};
  if (!above) return false;
  switch (above->kind) {
    case ExprKind::kAttribute:
      return std::find(std::begin(kWriters), std::end(kWriters), above->text) == std::end(kWriters);
    case ExprKind::kSubscript:
      return !is_target;
    case ExprKind::kCall:
      return is_call_of(*above, {"__import__", "dict", "eval", "len", "list", "set", "sorted"});
    case ExprKind::kFor:
    case ExprKind::kCompare:
    case ExprKind::kBinary:
      return true;
    default:
      return false;
  }
}

// Whether an expression gives names to modules that its text does not show. `above`: what it is
// part of; none: a statement.
bool writes_variables(const Expr* expression, const Expr* above, bool is_target) {
  if (!expression) return false;
  if (is_call_of(*expression, {"exec"}) || gives_attribute(*expression)) return true;
  if (is_call_of(*expression, {"globals", "vars"}) && !only_asks(above, is_target)) return true;
  return std::any_of(expression->items.begin(), expression->items.end(), [&](const Expr* item) {
    return writes_variables(item, expression, is_target);
  });
}

bool writes_names(const Syntax& module, Block block, bool in_function) {
  return std::any_of(block.begin(), block.end(), [&](const Stmt* statement) {
    const auto& exprs = statement->exprs;
    const size_t targets = statement->kind == StmtKind::kAssign ? exprs.size() - 1 : 0;
    const bool goes_over = statement->kind == StmtKind::kFor;
    for (size_t i = 0; in_function && i < exprs.size(); i++)
      if (!(goes_over && exprs[i] && is_call_of(*exprs[i], {"globals", "vars"})) &&
          writes_variables(exprs[i], nullptr, i < targets))
        return true;
    if (statement->kind == StmtKind::kFunction)
      return writes_names(module, module.body_of(*statement), true);
    bool writes = false;
    for_each_block(*statement, [&](Block inner) {
      writes = writes || writes_names(module, inner, in_function);
    });
    return writes;
  });
}

void find_names(Block block, BlockFacts& facts) {
  for (const Stmt* statement : block) {
    const auto& exprs = statement->exprs;
    facts.makes_names |=
        imports_all(*statement) || std::any_of(exprs.begin(), exprs.end(), makes_names);
    facts.names_elsewhere |= std::any_of(exprs.begin(), exprs.end(), makes_names_elsewhere);
    find_names(statement->body, facts);
    find_names(statement->orelse, facts);
  }
}

std::optional<BlockFacts::Place> place_of(const Expr& expression) {
  if (expression.kind == ExprKind::kName) return BlockFacts::Place{expression.text, {}};
  if (expression.kind == ExprKind::kAttribute && expression.items[0]->kind == ExprKind::kName)
    return BlockFacts::Place{expression.text, expression.items[0]->text};
  return std::nullopt;
}

void add_assigned(const Expr& target, const Expr* value, BlockFacts& facts) {
  if (const auto place = place_of(target))
    facts.assigned.push_back({*place, value});
  else if (target.kind == ExprKind::kAttribute || target.kind == ExprKind::kSubscript)
    facts.assigned_within.push_back({&target, value});
  if (target.kind == ExprKind::kTuple || target.kind == ExprKind::kList)
    for (const Expr* item : target.items) add_assigned(*item, nullptr, facts);
}

bool removes(std::string_view method) {
  static constexpr std::string_view kMethods[] = {"clear",   "discard", "pop",
                                                  "popitem", "popleft", "remove"};
  return std::find(std::begin(kMethods), std::end(kMethods), method) != std::end(kMethods);
}

void add_collected(const Stmt& statement, BlockFacts& facts) {
  const auto add = [&](const Expr& expression, bool counts, bool removes = false) {
    if (const auto place = place_of(expression))
      facts.collected.push_back({*place, counts, removes});
  };
  if (statement.kind == StmtKind::kAssign)
    for (const Expr* expression : statement.exprs)
      if (expression && expression->kind == ExprKind::kSubscript) add(*expression->items[0], false);
  if (statement.kind == StmtKind::kExpression && statement.exprs[0]->kind == ExprKind::kCall &&
      statement.exprs[0]->items[0]->kind == ExprKind::kAttribute) {
    const Expr& method = *statement.exprs[0]->items[0];
    add(*method.items[0], false, removes(method.text));
    if (method.text == "update") facts.assigned_within.push_back({method.items[0], nullptr});
  }
  if (statement.kind == StmtKind::kAugmented) add(*statement.exprs[0], true);
  if (statement.kind == StmtKind::kDelete)
    for (const Expr* expression : statement.exprs)
      if (expression && expression->kind == ExprKind::kSubscript)
        add(*expression->items[0], false, true);
  const size_t targets = statement.kind == StmtKind::kAssign      ? statement.exprs.size() - 1
                         : statement.kind == StmtKind::kAugmented ? 1
                                                                  : 0;
  const Expr* value = statement.kind == StmtKind::kAssign ? statement.exprs.back() : nullptr;
  for (size_t i = 0; i < targets; i++) add_assigned(*statement.exprs[i], value, facts);
  if (statement.kind == StmtKind::kAnnotated && statement.exprs.size() > 2)
    add_assigned(*statement.exprs[0], statement.exprs[2], facts);
}

std::string_view text_of_constant(const Expr* expression) {
  return expression && expression->kind == ExprKind::kString ? expression->text
                                                             : std::string_view();
}

void add_given(const Stmt& statement, BlockFacts& facts) {
  const auto& exprs = statement.exprs;
  if (statement.kind == StmtKind::kExpression && is_call_of(*exprs[0], {"setattr"}) &&
      exprs[0]->items.size() > 2)
    facts.given.push_back({exprs[0]->items[1], text_of_constant(exprs[0]->items[2])});
  if (statement.kind != StmtKind::kAssign) return;
  for (size_t i = 0; i + 1 < exprs.size(); i++) {
    const Expr& target = *exprs[i];
    if (target.kind == ExprKind::kAttribute) facts.given.push_back({target.items[0], target.text});
    if (target.kind != ExprKind::kSubscript) continue;
    const Expr& variables = *target.items[0];
    if (variables.kind == ExprKind::kAttribute && variables.text == "__dict__")
      facts.given.push_back({variables.items[0], text_of_constant(target.items[1])});
  }
}

void add_raised(const Stmt& statement, BlockFacts& facts) {
  const Expr* error = raised_error(statement);
  const bool has_name =
      error && (error->kind == ExprKind::kName || error->kind == ExprKind::kAttribute);
  facts.raises.push_back(has_name ? error->text : "Exception");
}

// Of the errors from `first` on, those that a handler of the statement names.
void leave_out_caught(const Stmt& statement, std::vector<std::string_view>& errors, size_t first) {
  if (statement.handlers.empty()) return;
  const std::vector<std::string_view> caught = errors_of(statement);
  const auto is_caught = [&](std::string_view error) {
    return std::any_of(caught.begin(), caught.end(), [error](std::string_view name) {
      return name.empty() || name == error || name == "BaseException" ||
             (name == "Exception" && error != "SystemExit");
    });
  };
  errors.erase(
      std::remove_if(errors.begin() + static_cast<std::ptrdiff_t>(first), errors.end(), is_caught),
      errors.end());
}

// Not of the functions and classes in it.
void find_own(Block block, BlockFacts& facts, bool in_loop = false) {
  for (const Stmt* statement : block) {
    add_collected(*statement, facts);
    add_given(*statement, facts);
    if (statement->kind == StmtKind::kFunction || statement->kind == StmtKind::kClass) continue;
    if (statement->kind == StmtKind::kImport || statement->kind == StmtKind::kImportFrom)
      facts.imports.push_back(statement);
    facts.imports_by_name |=
        std::any_of(statement->exprs.begin(), statement->exprs.end(), imports_by_name);
    facts.returns_value |= statement->kind == StmtKind::kReturn && !statement->exprs.empty() &&
                           statement->exprs[0] && statement->exprs[0]->kind != ExprKind::kNone;
    facts.returns |= statement->kind == StmtKind::kReturn;
    facts.leaves_loop |= !in_loop && statement->kind == StmtKind::kBreak;
    facts.leaves_round |= !in_loop && statement->kind == StmtKind::kContinue;
    if (statement->kind == StmtKind::kRaise) add_raised(*statement, facts);
    const bool is_loop = statement->kind == StmtKind::kFor || statement->kind == StmtKind::kWhile;
    const size_t raised = facts.raises.size();
    find_own(statement->body, facts, in_loop || is_loop);
    leave_out_caught(*statement, facts.raises, raised);
    for (const Block inner : {statement->orelse, statement->finally})
      find_own(inner, facts, in_loop);
    for (const Handler& handler : statement->handlers) find_own(handler.body, facts, in_loop);
    for (const Case& one : statement->cases) find_own(one.body, facts, in_loop);
  }
}

}  // namespace

void add_errors(const Expr* type, std::vector<std::string_view>& names) {
  if (!type) {
    names.push_back("");
  } else if (type->kind == ExprKind::kName || type->kind == ExprKind::kAttribute) {
    names.push_back(type->text);
  } else {
    for (const Expr* item : type->items) add_errors(item, names);
  }
}

std::vector<std::string_view> errors_of(const Stmt& statement) {
  std::vector<std::string_view> names;
  for (const Handler& handler : statement.handlers) add_errors(handler.type, names);
  return names;
}

bool imports_all(const Stmt& statement) {
  return statement.kind == StmtKind::kImportFrom && !statement.aliases.empty() &&
         statement.aliases[0].name == "*";
}

bool functions_write_names(const Syntax& module) {
  return writes_names(module, module.module(), false);
}

const Expr* raised_error(const Stmt& statement) {
  const Expr* error = statement.exprs.empty() ? nullptr : statement.exprs[0];
  return error && error->kind == ExprKind::kCall ? error->items[0] : error;
}

const BlockFacts& KnownBlocks::of(Block block) {
  if (block.empty()) return nothing_;
  const auto [known, is_new] = facts_.try_emplace(block.data());
  BlockFacts& facts = known->second;
  if (is_new) {
    find_names(block, facts);
    find_own(block, facts);
  }
  return facts;
}

}  // namespace cohabit::python
