// Statements.
#include <fmt/format.h>

#include <algorithm>

#include "imports/interpreter.h"
#include "imports/module_name.h"

namespace cohabit::python {
namespace {

// Those that are raised again, or others for them.
std::vector<std::string_view> passed_on_by(const Stmt& statement) {
  std::vector<std::string_view> names;
  for (const Handler& handler : statement.handlers)
    if (!handler.body.empty() && handler.body.back()->kind == StmtKind::kRaise)
      add_errors(handler.type, names);
  return names;
}

constexpr int kMostUnsureRounds = 16;
constexpr uint64_t kMostSteps = 40'000'000;

bool is_model(Ref value, std::string_view name) {
  const auto* model = as<Model>(value, Type::kModel);
  return model && model->name == name;
}

// What stands in an object itself.
// Where the attribute's value stands; null: it has none of its own.
Ref* own_place(Ref object, std::string_view name) {
  if (auto* instance = as<Instance>(object, Type::kInstance)) return instance->names.find(name);
  if (auto* module = as<Module>(object, Type::kModule)) return module->names.find(name);
  if (auto* type = as<Class>(object, Type::kClass)) return type->names.find(name);
  return nullptr;
}

Ref own_value(Ref object, std::string_view name) {
  const Ref* place = own_place(object, name);
  return place ? *place : nullptr;
}

// Likewise of the item under a constant.
Ref* item_place(Ref object, const Expr& key) {
  const bool is_number = key.kind == ExprKind::kInteger;
  if (!is_number && key.kind != ExprKind::kString) return nullptr;
  if (auto* dict = as<Dict>(object, Type::kDict)) {
    Int number(Type::kInt, key.integer);
    Str text(Type::kStr, key.text);
    return dict->items.find(is_number ? static_cast<Ref>(&number) : &text);
  }
  auto* list = as<Sequence>(object, Type::kList);
  if (!list || !is_number || key.integer < 0) return nullptr;
  const auto at = static_cast<size_t>(key.integer);
  return at < list->items.size() ? &list->items[at] : nullptr;
}

}  // namespace

Flow Interpreter::execute(Block block) {
  for (size_t i = 0; i < block.size(); i++) {
    const bool doubted = frames_.back().doubt.any();
    const Flow flow = execute(*block[i]);
    if (flow == Flow::kRaise && doubted) return forgive_doubted(block.subspan(i + 1));
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

// What is raised where it is in doubt whether the program comes there: an import that fails, which
// nobody expects, says that it does not.
Flow Interpreter::forgive_doubted(Block rest) {
  raised_->doubted |= frames_.back().doubt.left();
  const bool is_sure = ended_ || raised_->refused || raised_->left || raised_->of_consumer;
  if (is_sure || !is_unawaited_failure()) return Flow::kRaise;
  clear_raised();
  guess_names(rest);
  undecided("condition, and an import that fails behind it");
  frames_.back().returned = opaque_;
  const Doubt& doubt = frames_.back().doubt;
  if (!doubt.returned && !doubt.raised && !doubt.ended) return Flow::kContinue;
  return scope()->is_module() || scope()->defining ? Flow::kNext : Flow::kReturn;
}

void Interpreter::add_doubt(Block block) {
  const BlockFacts& skipped = blocks_.of(block);
  if (is_own_code(current_module()) && !block.empty()) may_end(ends_in(block));
  Doubt& doubt = frames_.back().doubt;
  doubt.returned |= skipped.returns;
  doubt.left_loop |= skipped.leaves_loop;
  doubt.left_round |= skipped.leaves_round;
  // An error of the program's own is one of those that it derives from as well.
  const auto is_awaited = [this](std::string_view error) {
    std::vector<const Class*> types;
    if (waits_for(error, false)) return true;
    if (const auto* own = as<Class>(find_name(error), Type::kClass)) types.push_back(own);
    for (size_t i = 0; i < types.size() && i < 20; i++) {
      if (waits_for(types[i]->name, false)) return true;
      types.insert(types.end(), types[i]->bases.begin(), types[i]->bases.end());
    }
    return false;
  };
  doubt.raised |= std::any_of(skipped.raises.begin(), skipped.raises.end(), is_awaited);
}

Interpreter::Catching::Catching(Interpreter& in, std::vector<std::string_view> errors, bool here)
    : in_(in), frames_(in.frames_.size()) {
  in.catching_.push_back({std::move(errors), in.module_depth_, here, {}});
  if (frames_ > 0) doubted_ = in.frames_.back().doubt.raised;
}

// Behind it there is no doubt of what an error that is caught would have left.
Interpreter::Catching::~Catching() {
  in_.catching_.pop_back();
  if (frames_ > 0 && in_.frames_.size() == frames_) in_.frames_.back().doubt.raised = doubted_;
}

bool Interpreter::exhausted() const {
  return steps_ > kMostSteps || is_full();
}

Flow Interpreter::execute(const Stmt& statement) {
  steps_++;
  if (ended_) {
    raised_ = ended_;
    return Flow::kRaise;
  }
  if (exhausted() || (step_limit_ && steps_ > step_limit_)) {
    raise("RecursionError", "the budget for one call is used up");
    raised_->left = true;  // ours: no handler of the program is asked
    return Flow::kRaise;
  }
  frames_.back().line = statement.line;
  switch (statement.kind) {
    case StmtKind::kExpression:
      return execute_expression(*statement.exprs[0]);
    case StmtKind::kAssign: {
      Ref value = evaluate(*statement.exprs.back());
      if (!value) return Flow::kRaise;
      for (size_t i = 0; i + 1 < statement.exprs.size(); i++)
        if (!assign(*statement.exprs[i], value)) return Flow::kRaise;
      return Flow::kNext;
    }
    case StmtKind::kAugmented:
      return execute_augmented(statement);
    case StmtKind::kAnnotated: {
      Ref value = statement.exprs[2] ? evaluate(*statement.exprs[2]) : none_;
      if (!value || (statement.exprs[2] && !assign(*statement.exprs[0], value)))
        return Flow::kRaise;
      const bool in_function = !scope()->is_module() && !scope()->defining;
      if (in_function || keeps_annotations()) return Flow::kNext;
      return evaluate(*statement.exprs[1]) ? Flow::kNext : Flow::kRaise;
    }
    case StmtKind::kImport:
      return execute_import(statement);
    case StmtKind::kImportFrom:
      return execute_import_from(statement);
    case StmtKind::kFunction:
      return execute_function(statement);
    case StmtKind::kClass:
      return execute_class(statement);
    case StmtKind::kIf:
      return execute_if(statement);
    case StmtKind::kWhile:
      return execute_while(statement);
    case StmtKind::kFor:
      return execute_for(statement);
    case StmtKind::kTry:
      return execute_try(statement);
    case StmtKind::kWith:
      return execute_with(statement);
    case StmtKind::kReturn:
      frames_.back().returned =
          statement.exprs.empty() || !statement.exprs[0] ? none_ : evaluate(*statement.exprs[0]);
      if (!frames_.back().returned) return Flow::kRaise;
      frames_.back().returned = returned_for_lack(frames_.back().returned);
      return Flow::kReturn;
    case StmtKind::kRaise:
      return execute_raise(statement);
    case StmtKind::kAssert: {
      Ref value = evaluate(*statement.exprs[0]);
      if (!value) return Flow::kRaise;
      if (truth(value) != std::optional<bool>(false)) return Flow::kNext;
      const VersionCheck check(*this, *statement.exprs[0]);
      if (!expects("AssertionError") && !checks_version() && (!value->lacking || in_doubt()))
        return Flow::kNext;
      const bool explained = statement.exprs.size() > 1 && statement.exprs[1];
      Ref message = explained ? evaluate(*statement.exprs[1]) : nullptr;
      if (explained && !message) return Flow::kRaise;
      raise("AssertionError", std::string(message ? display(message).value_or("") : ""));
      raised_->declared = checks_version();
      note_lack(*raised_, value);
      return Flow::kRaise;
    }
    case StmtKind::kDelete:
      return execute_delete(statement);
    case StmtKind::kGlobal:
      for (const std::string_view name : statement.names) scope()->globals.push_back(name);
      return Flow::kNext;
    case StmtKind::kNonlocal:
      for (const std::string_view name : statement.names) scope()->nonlocals.push_back(name);
      return Flow::kNext;
    case StmtKind::kPass:
      return Flow::kNext;
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
    case StmtKind::kMatch:
      return execute_match(statement);
    case StmtKind::kTypeAlias:
      bind(statement.name, opaque());
      return Flow::kNext;
  }
  return Flow::kNext;
}

// What a name, or an attribute of one, is now, without running anything. Null: not known.
Ref Interpreter::value_named(const Expr& expression) {
  if (expression.kind == ExprKind::kName) return find_name(expression.text);
  const bool is_item = expression.kind == ExprKind::kSubscript;
  if (!is_item && expression.kind != ExprKind::kAttribute) return nullptr;
  Ref owner = value_named(*expression.items[0]);
  if (!owner || !is_item) return data_of(owner, expression.text);
  const Ref* place = item_place(owner, *expression.items[1]);
  return place ? *place : nullptr;
}

// A function of a module often gives names to that module: mxnet's setattr(module, ...), in a
// loop over what its library tells. And to the one whose code has called it: astropy.constants
// gives itself to a function of its utils.
void Interpreter::expect_names(const BlockFacts& skipped) {
  for (const BlockFacts::Given& given : skipped.given) {
    Ref owner = value_named(*given.owner);
    if (!owner && given.name.empty() && current_module())
      loose_packages_.insert(top_of(current_module()->spec.name));
    Ref* place = is_own_code(current_module()) ? own_place(owner, given.name) : nullptr;
    if (place) *place = doubt_replaced(*place);
    Module* module = as<Module>(owner, Type::kModule);
    if (!module) continue;
    if (given.name.empty())
      module->open = true;
    else if (!module->names.contains(given.name))
      module->names[given.name] = opaque();
  }
  if (!(scope()->is_module() ? skipped.makes_names : skipped.names_elsewhere)) return;
  current_module()->open = true;
  const auto caller = std::find_if(frames_.rbegin(), frames_.rend(), [](const Frame& frame) {
    return frame.scope->is_module() && frame.scope->module;
  });
  if (caller != frames_.rend()) caller->scope->module->open = true;
}

void Interpreter::note_skipped(Block block, uint32_t line, std::string_view why) {
  const BlockFacts& facts = blocks_.of(block);
  expect_names(facts);
  guesses_++;
  frames_.back().may_return |= facts.returns_value;
  add_doubt(block);
  // Only of a branch that could have loaded something a note is of worth.
  if (!facts.imports_by_name &&
      std::none_of(facts.imports.begin(), facts.imports.end(),
                   [this](const Stmt* statement) { return would_load(*statement); }))
    return;
  frames_.back().line = line;
  undecided(std::string(why));
}

// Whether an import statement, run here, might load what is not loaded yet.
bool Interpreter::would_load(const Stmt& statement) {
  if (statement.kind == StmtKind::kImport)
    return std::any_of(statement.aliases.begin(), statement.aliases.end(),
                       [this](const Alias& alias) { return !loaded_module(alias.name); });
  if (statement.level == 0 && statement.name == "__future__") return false;
  const auto name = absolute_name(current_module(), statement.level, statement.name);
  const Module* module = name ? as<Module>(loaded_module(*name), Type::kModule) : nullptr;
  if (!module) return true;
  return std::any_of(statement.aliases.begin(), statement.aliases.end(), [&](const Alias& alias) {
    if (module->names.contains(alias.name)) return false;
    return module->names.contains("__getattr__") ||
           (module->names.contains("__path__") &&
            !loaded_module(fmt::format("{}.{}", *name, alias.name)));
  });
}

// A name that may be bound by now.
void Interpreter::guess_target(const Expr* target) {
  if (!target) return;
  if (target->kind == ExprKind::kName) {
    if (!find_name(target->text)) bind(target->text, opaque());
  } else if (target->kind == ExprKind::kTuple || target->kind == ExprKind::kList ||
             target->kind == ExprKind::kStarred) {
    for (const Expr* item : target->items) guess_target(item);
  }
}

// Names that a branch would bind, when it is not known whether it runs: they may exist.
void Interpreter::guess_names(Block block) {
  for (const Stmt* statement : block) {
    const auto& exprs = statement->exprs;
    switch (statement->kind) {
      case StmtKind::kFunction:
      case StmtKind::kClass:
        if (!find_name(statement->name)) bind(statement->name, opaque());
        break;
      case StmtKind::kAssign:
        for (size_t i = 0; i + 1 < exprs.size(); i++) guess_target(exprs[i]);
        break;
      case StmtKind::kAnnotated:
        if (exprs.size() > 2 && exprs[2]) guess_target(exprs[0]);
        break;
      case StmtKind::kAugmented:  // `__all__ += ...`
        if (statement->exprs[0]->kind != ExprKind::kName) break;
        if (Sequence* items = sequence_of(find_name(statement->exprs[0]->text))) {
          auto* more = make<Sequence>(items->type);
          more->items = items->items;
          more->open = true;
          bind(statement->exprs[0]->text, more);
        }
        break;
      case StmtKind::kImport:
      case StmtKind::kImportFrom:
        for (const Alias& alias : statement->aliases) {
          std::string_view name = alias.bound.empty() ? alias.name : alias.bound;
          name = top_of(name);
          if (name != "*" && !find_name(name)) bind(name, opaque());
        }
        break;
      case StmtKind::kFor:
      case StmtKind::kIf:
      case StmtKind::kTry:
      case StmtKind::kWhile:
      case StmtKind::kWith:
      case StmtKind::kMatch:
        if (statement->kind == StmtKind::kFor) guess_target(exprs[0]);
        for (size_t i = 1; statement->kind == StmtKind::kWith && i < exprs.size(); i += 2)
          guess_target(exprs[i]);
        for (const Handler& handler : statement->handlers) guess_names(handler.body);
        for (const Case& one : statement->cases) guess_names(one.body);
        for (const Block inner : {statement->body, statement->orelse, statement->finally})
          guess_names(inner);
        break;
      default:
        break;
    }
  }
}

// What a loop counts and collects, when it is not known how often it runs, or a match, whose case
// is not known: llvmlite takes its version number apart so, and numba compares it; anyio looks
// whether there is anything to be imported later. Of a branch that was skipped, what has nothing
// yet: whether it was empty decides what comes next (glfw finds no library that would do).
void Interpreter::forget_collected(Block block, bool only_empty) {
  note_registered_in(blocks_.of(block));
  const bool is_own = is_own_code(current_module());
  for (const auto& [place, counts, removes] : blocks_.of(block).collected) {
    if (counts && only_empty) continue;
    const Ref value = value_at(place);
    if (!value || value == sys_modules_ || value == environment_) continue;
    if (removes && is_own) {
      let_lack(value);
      continue;
    }
    if (counts) {
      set_at(place, opaque());
      continue;
    }
    if (only_empty) {
      if (auto* items = as<Dict>(value, Type::kDict)) {
        items->partial = true;
        if (items->variables_of) items->open_all();
      }
      if (Sequence* items = sequence_of(value)) items->partial = true;
      open_if_empty(value);
      continue;
    }
    open_all(value);
  }
}

namespace {

// `else: raise TypeError(...)`: what it raises. Empty: an import that is said to fail, which is an
// answer like any other, or nothing.
std::string_view refusal(Block block) {
  if (block.empty() || block[0]->kind != StmtKind::kRaise) return {};
  const Expr* error = raised_error(*block[0]);
  if (!error || error->text.ends_with("ImportError") || error->text == "ModuleNotFoundError")
    return {};
  return error->text;
}

}  // namespace

Flow Interpreter::execute_if(const Stmt& statement) {
  Ref condition = evaluate(*statement.exprs[0]);
  if (!condition) return Flow::kRaise;
  const auto decided = truth(condition);
  if (decided && condition->doubted) return execute_in_doubt(statement, *decided);
  if (decided) {
    const VersionCheck check(*this, *statement.exprs[0]);
    const BehindLacking behind(*this, lacking_in(*statement.exprs[0], condition));
    return execute(*decided ? statement.body : statement.orelse);
  }
  guesses_++;
  if (guess_again(*statement.exprs[0]).value_or(false))
    return execute_guessed(statement.body, statement.line);
  // Programs do not come there, if nobody waits for it.
  if (const auto error = refusal(statement.orelse); !error.empty() && !waits_for(error, true))
    return execute_guessed(statement.body, statement.line);
  return execute_in_doubt(statement, false);
}

// One branch, where the other may be it.
Flow Interpreter::execute_in_doubt(const Stmt& statement, bool body) {
  const Block skipped = body ? statement.orelse : statement.body;
  skip(skipped, statement.line, "condition", true);
  const Flow flow = execute_guessed(body ? statement.body : statement.orelse, statement.line);
  if (flow != Flow::kNext) return flow;
  doubt_assigned(statement.body);
  doubt_assigned(statement.orelse);
  return flow;
}

// What is not run because nobody knows whether it would be, see the table in
// docs/design/imports.md.
void Interpreter::skip(Block block, uint32_t line, std::string_view why, bool only_empty) {
  note_skipped(block, line, why);
  guess_names(block);
  forget_collected(block, only_empty);
  doubt_assigned(block);
  may_run_calls(block, only_empty);
}

bool is_constant(const Expr* expression, Ref value) {
  if (!expression) return false;
  switch (expression->kind) {
    case ExprKind::kNone:
      return value->type == Type::kNone;
    case ExprKind::kTrue:
    case ExprKind::kFalse:
      return value->type == Type::kBool &&
             static_cast<Int*>(value)->value == (expression->kind == ExprKind::kTrue ? 1 : 0);
    case ExprKind::kInteger:
      return value->type == Type::kInt && static_cast<Int*>(value)->value == expression->integer;
    case ExprKind::kString:
      return value->type == Type::kStr && static_cast<Str*>(value)->text == expression->text;
    default:
      return false;
  }
}

// `sys.modules[a] = b` in what is skipped.
void Interpreter::note_registered_in(const BlockFacts& skipped) {
  for (const auto& [target, value] : skipped.assigned_within) {
    const bool is_item = target->kind == ExprKind::kSubscript;
    if ((!is_item && value) || value_named(is_item ? *target->items[0] : *target) != sys_modules_)
      continue;
    const bool is_known = is_item && target->items[1]->kind == ExprKind::kString;
    note_registered(is_known ? constant(target->items[1]->text) : nullptr);
  }
}

void Interpreter::doubt_assigned(Block block) {
  for (const auto& [place, given] : blocks_.of(block).assigned) {
    Ref value = value_at(place);
    if (!value || value->doubted || is_constant(given, value)) continue;
    Ref other = doubt_replaced(value);
    if (other != value) set_at(place, other);
  }
  for (const auto& assigned : blocks_.of(block).assigned_within) doubt_within(assigned);
}

void Interpreter::doubt_within(const BlockFacts::AssignedWithin& assigned) {
  const Expr& target = *assigned.target;
  const bool is_attribute = target.kind == ExprKind::kAttribute;
  const bool is_item = target.kind == ExprKind::kSubscript;
  if (!assigned.value || (!is_attribute && !is_item)) doubt_items(value_named(target));
  if (!is_attribute && !is_item) return;
  Ref owner = value_named(*target.items[0]);
  if (!owner || owner == sys_modules_ || owner == environment_) return;
  Ref* place = is_item ? item_place(owner, *target.items[1]) : own_place(owner, target.text);
  if (place && !(*place)->doubted && !is_constant(assigned.value, *place))
    *place = doubt_replaced(*place);
  const bool is_constant_key = is_item && (target.items[1]->kind == ExprKind::kInteger ||
                                           target.items[1]->kind == ExprKind::kString);
  if (is_item && !place && !is_constant_key) doubt_items(owner);
  if (is_item && !place && is_own_code(current_module())) open_all(owner);
}

// What the program's own code may have put in the place of an empty container is no empty one.
Ref Interpreter::doubt_replaced(Ref value) {
  if (!is_own_code(current_module())) return doubt(value);
  if (auto* items = as<Dict>(value, Type::kDict);
      items && items->items.empty() && !items->variables_of) {
    auto* other = make<Dict>();
    other->open = true;
    other->factory = items->factory;
    return other;
  }
  Sequence* items = value->type == Type::kTuple ? nullptr : sequence_of(value);
  if (!items || !items->items.empty() || items == sys_path_) return doubt(value);
  Sequence* other = list({}, value->type);
  other->open = true;
  return other;
}

// Any of them may be another one by now. Of many, programs look for what they know to be there.
void Interpreter::doubt_items(Ref container) {
  constexpr size_t kMost = 64;
  if (!container || container == sys_modules_ || container == environment_) return;
  if (auto* list = as<Sequence>(container, Type::kList); list && list->items.size() <= kMost)
    for (Ref& item : list->items) item = doubt(item);
  auto* dict = as<Dict>(container, Type::kDict);
  if (!dict || dict->items.size() > kMost || dict->variables_of) return;
  for (const auto& [key, value] : dict->items)
    if (Ref other = doubt(value); other != value) *dict->items.find(key) = other;
}

Ref Interpreter::value_at(const BlockFacts::Place& place) {
  return place.owner.empty() ? find_name(place.name) : data_of(find_name(place.owner), place.name);
}

// Its own attribute, else what its class has for it, but for what is computed there. Null: neither.
Ref Interpreter::data_of(Ref owner, std::string_view name) const {
  if (Ref value = own_value(owner, name)) return value;
  auto* instance = as<Instance>(owner, Type::kInstance);
  Ref of_class = instance ? class_attribute(instance->of, name) : nullptr;
  const bool is_plain = of_class && is_data(of_class) && of_class->type != Type::kInstance;
  return is_plain ? of_class : nullptr;
}

void Interpreter::set_at(const BlockFacts::Place& place, Ref value) {
  if (place.owner.empty()) return bind(place.name, value);
  Ref owner = find_name(place.owner);
  if (auto* instance = as<Instance>(owner, Type::kInstance))
    instance->names[place.name] = value;  // no setter is called
  else if (owner)
    set_attribute(owner, place.name, value);
}

Ref Interpreter::doubt(Ref value) {
  if (value->doubted) return value;
  if (value->type == Type::kBool || value->type == Type::kInt)
    value = make<Int>(value->type, static_cast<Int*>(value)->value);
  else if (value->type == Type::kStr)
    value = make<Str>(Type::kStr, static_cast<Str*>(value)->text);
  else if (value->type == Type::kNone)
    value = make<Value>(Type::kNone);
  else if ((!as<Function>(value, Type::kFunction) && !as<Instance>(value, Type::kInstance)) ||
           !is_own_code(current_module()))
    return value;  // of others an object stays the one it is
  value->doubted = true;
  return value;
}

// `if x:` and later `if not x:`, of an x that is not known: one of them is run. The first guess
// (not x) is kept with the name. The truth of the condition, if there is such a guess.
std::optional<bool> Interpreter::guess_again(const Expr& condition) {
  const Expr* name = &condition;
  bool wanted = true;
  while (name->kind == ExprKind::kUnary && name->op == Operator::kNot) {
    name = name->items[0];
    wanted = !wanted;
  }
  if (name->kind != ExprKind::kName || !scope()->names->contains(name->text)) return std::nullopt;
  Opaque* known = as<Opaque>(scope()->names->get(name->text), Type::kOpaque);
  if (known && known->guessed) return *known->guessed == wanted;
  auto* guessed = make<Opaque>(known ? known->name : "");
  guessed->guessed = !wanted;
  if (known) bind(name->text, guessed);
  return std::nullopt;
}

// Where only a guess has led to the end of the process, the guess was wrong.
bool Interpreter::forgive_exit() {
  if ((ended_ && ended_->of_consumer) || (raised_ && raised_->of_consumer)) return false;
  if (!ended_ && (!raised_is("SystemExit") || expects("SystemExit"))) return false;
  if (is_own_code(current_module())) {
    Ends ends;
    (ended_ ? ends.at_once : ends.by_error) = true;
    may_end(ends);
  }
  ended_.reset();
  clear_raised();
  return true;
}

// A branch that was taken because the other was not known to be: an import that fails in it and
// that nobody expects to, says that the guess was wrong.
Flow Interpreter::execute_guessed(Block block, uint32_t line) {
  const Flow flow = execute(block);
  if (flow == Flow::kRaise && forgive_exit()) {
    guess_names(block);
    frames_.back().line = line;
    undecided("condition, and without it the process ends");
    return Flow::kNext;
  }
  if (flow != Flow::kRaise || !is_unawaited_failure() || raised_->of_consumer) return flow;
  const bool refused = raised_->refused;
  const std::string why = refused ? ": " + raised_->message : "";
  clear_raised();
  guess_names(block);
  frames_.back().line = line;
  undecided("condition, and without it an import fails" + why).may_fail |= refused;
  return Flow::kNext;
}

namespace {

bool names_version(const Expr* expression) {
  constexpr std::string_view kVersion = "version";
  if (!expression) return false;
  const std::string_view text = expression->text;
  const auto is_same = [](unsigned char c, char wanted) { return (c | 0x20) == wanted; };
  if (text.size() >= kVersion.size() && std::search(text.begin(), text.end(), kVersion.begin(),
                                                    kVersion.end(), is_same) != text.end())
    return true;
  return std::any_of(expression->items.begin(), expression->items.end(), names_version);
}

}  // namespace

Interpreter::VersionCheck::VersionCheck(Interpreter& in, const Expr& condition)
    : in_(in), before_(in.version_check_) {
  if (names_version(&condition)) in.version_check_ = in.frames_.size();
}

// Behind a loop there is no doubt of what would have left it.
void Interpreter::Round::end() {
  if (in_.frames_.size() != depth_) return;
  Doubt& doubt = in_.frames_.back().doubt;
  doubt.left_loop = before_.left_loop;
  doubt.left_round = before_.left_round;
}

// `while True` with an end that is not known (a branch was guessed, a function was not run) and
// without an effect would go on for ever: WeakKeyDictionary.clear() took most steps of the plans of
// large frameworks. A few rounds do for those that a counter ends.
class Interpreter::EndlessLoop {
 public:
  EndlessLoop(const Interpreter& in, const Expr& condition)
      : in_(in),
        endless_(condition.kind == ExprKind::kTrue || condition.kind == ExprKind::kInteger) {}
  void start_round() {
    guesses_ = in_.guesses_;
    effects_ = in_.effects_;
  }
  // After a round.
  bool is_hopeless() {
    if (!endless_ || in_.guesses_ == guesses_ || in_.effects_ != effects_) return false;
    return ++unsure_rounds_ >= kMostUnsureRounds;
  }

 private:
  const Interpreter& in_;
  bool endless_;
  uint64_t guesses_ = 0, effects_ = 0;
  int unsure_rounds_ = 0;
};

// Behind the last round, if no break came first.
Flow Interpreter::execute_else(const Stmt& loop, Round& round) {
  const bool may_have_left = frames_.back().doubt.left_loop;
  round.end();
  const bool is_new = may_have_left && !frames_.back().doubt.left_loop;
  return is_new ? execute_guessed(loop.orelse, loop.line) : execute(loop.orelse);
}

Flow Interpreter::execute_while(const Stmt& statement) {
  EndlessLoop loop(*this, *statement.exprs[0]);
  Round round(*this);
  for (size_t count = 0; count < kMostRounds; count++) {
    loop.start_round();
    frames_.back().doubt.left_round = false;
    Ref condition = evaluate(*statement.exprs[0]);
    if (!condition) return Flow::kRaise;
    const auto decided = truth(condition);
    if (!decided) {
      if (count == 0 || is_own_code(current_module()))
        skip(statement.body, statement.line, "condition of a loop");
      return Flow::kNext;
    }
    if (!*decided) return execute_else(statement, round);
    const Flow flow = execute(statement.body);
    if (flow == Flow::kBreak) return Flow::kNext;
    if (flow == Flow::kReturn || flow == Flow::kRaise) return flow;
    if (loop.is_hopeless()) break;
  }
  if (is_own_code(current_module())) skip(statement.body, statement.line, "condition of a loop");
  return Flow::kNext;
}

// What `except*` makes of a group of errors: each handler that takes one of them is run. What is
// not known to be taken is not known to go on either.
Flow Interpreter::handle_group(const Stmt& statement) {
  Raised group = *raised_;
  raised_.reset();
  const auto* value = as<Instance>(group.value, Type::kInstance);
  const bool is_told = value && value->arguments && value->arguments->items.size() > 1;
  const auto errors = is_told ? elements(value->arguments->items[1]) : std::nullopt;
  std::vector<Ref> left;
  if (errors) left.assign(errors->begin(), errors->end());
  bool is_known = errors && !holds_more(value->arguments->items[1]);
  for (const Handler& handler : statement.handlers) {
    Ref types = handler.type ? evaluate(*handler.type) : nullptr;
    if (!types) return Flow::kRaise;
    bool takes = false;
    std::erase_if(left, [&](Ref error) {
      const auto matches = is_instance(error, types);
      takes |= matches.value_or(false);
      is_known &= matches.has_value();
      return matches.value_or(false);
    });
    if (!takes && is_known) continue;
    if (!handler.name.empty()) bind(handler.name, opaque());
    if (!takes) {
      skip(handler.body, statement.line, "which errors a group holds");
      continue;
    }
    handling_.push_back(group);
    handling_.back().handled_in = frames_.size();
    const Flow flow = execute(handler.body);
    handling_.pop_back();
    if (flow != Flow::kNext) return flow;
  }
  if (!is_known || left.empty()) return Flow::kNext;
  raised_ = std::move(group);
  return Flow::kRaise;
}

std::optional<bool> Interpreter::handler_matches(const Handler& handler) {
  if (!handler.type) return true;
  const Raised raised = *raised_;
  raised_.reset();
  Ref types = evaluate(*handler.type);
  if (!types) {  // evaluating the handler raised: that is what goes on
    return false;
  }
  raised_ = raised;
  if (!raised.type) return true;
  // By bases alone: no class is asked here whether it takes others' objects.
  const auto is_one = [&](Ref item) -> std::optional<bool> {
    Class* one = as<Class>(item, Type::kClass);
    if (one && derives_from(raised.type, one)) return true;
    return one && !is_open(raised.type) ? std::optional(false) : std::nullopt;
  };
  const Sequence* several = sequence_of(types);
  if (!several) return is_one(types);
  bool is_sure = !several->open;
  for (Ref item : several->items) {
    const auto is = sequence_of(item) ? std::nullopt : is_one(item);
    if (is && *is) return true;
    is_sure &= is.has_value();
  }
  return is_sure ? std::optional(false) : std::nullopt;
}

Flow Interpreter::execute_try(const Stmt& statement) {
  Flow flow = Flow::kNext;
  const bool doubted = frames_.back().doubt.raised;
  bool may_have_raised = doubted, has_handled = false;
  if (statement.handlers.empty()) {
    flow = execute(statement.body);
  } else {
    const Catching catching(*this, errors_of(statement), passed_on_by(statement));
    flow = execute(statement.body);
    may_have_raised = frames_.back().doubt.raised;
  }
  if (flow == Flow::kRaise && raised_ && raised_->left) return flow;
  const bool is_group = raised_is("BaseExceptionGroup") || raised_is("ExceptionGroup");
  if (flow == Flow::kRaise && statement.is_star && is_group) {
    flow = handle_group(statement);
  } else if (flow == Flow::kRaise && raised_) {
    for (const Handler& handler : statement.handlers) {
      if (handler_matches(handler) == std::optional<bool>(false)) continue;
      Raised caught = *raised_;
      caught.failed_import = raised_is("ImportError");
      caught.doubted |= caught.failed_import && is_own_code(current_module()) && may_come(caught);
      raised_.reset();
      if (!handler.name.empty()) bind(handler.name, caught.value ? caught.value : opaque());
      handling_.push_back(caught);
      handling_.back().handled_in = frames_.size();
      if (caught.doubted) {  // what comes behind it may have been run
        guess_names(statement.body);
        expect_names(blocks_.of(statement.body));
      }
      frames_.back().doubt.raised |= caught.doubted;
      has_handled = true;
      flow = execute(handler.body);
      frames_.back().doubt.raised = doubted;
      handling_.pop_back();
      if (flow == Flow::kNext) mark_left_values(caught, statement.body, handler.body);
      break;
    }
  } else if (flow == Flow::kNext && !statement.orelse.empty()) {
    frames_.back().doubt.raised |= may_have_raised;
    flow = execute(statement.orelse);
    if (!statement.handlers.empty()) frames_.back().doubt.raised = doubted;
  }
  if (may_have_raised && !doubted && flow != Flow::kRaise && !has_handled) skip_handlers(statement);
  if (statement.finally.empty()) return flow;
  const auto pending = raised_;
  Ref returned = frames_.back().returned;
  raised_.reset();
  const Flow last = execute(statement.finally);
  if (last != Flow::kNext) return last;
  raised_ = pending;
  frames_.back().returned = returned;
  return flow;
}

// Behind a try statement in which a skipped branch may have raised what is expected: a handler may
// have run in the place of what did.
void Interpreter::skip_handlers(const Stmt& statement) {
  if (!is_own_code(current_module())) return;
  for (const Handler& handler : statement.handlers)
    skip(handler.body, frames_.back().line, "whether an error is raised", true);
  doubt_assigned(statement.body);
  doubt_assigned(statement.orelse);
}

// What a program has put in the place of builtins.__import__; null: nothing.
Ref Interpreter::own_import() {
  Module* builtins = as<Module>(loaded_module("builtins"), Type::kModule);
  Ref import = builtins ? builtins->names.get("__import__") : nullptr;
  const bool is_own =
      import && import->type != Type::kOpaque && !is_model(import, "builtins.__import__");
  return is_own ? import : nullptr;
}

// What own_import() gives. `names`: of a from statement.
Ref Interpreter::import_by_statement(std::string_view name, std::span<const Alias> names,
                                     uint32_t level) {
  Sequence* wanted = names.empty() ? nullptr : list({}, Type::kTuple);
  for (const Alias& alias : names) wanted->items.push_back(constant(alias.name));
  Ref given = call(own_import(), Arguments(arena_, {constant(name), variables_of(current_module()),
                                                    none_, wanted ? wanted : none_,
                                                    integer(static_cast<int64_t>(level))}));
  if (given && given->type == Type::kOpaque)
    undecided(fmt::format("what the program's own __import__ gives for {}", name));
  return given;
}

Flow Interpreter::execute_import(const Stmt& statement) {
  const bool is_own = own_import();
  for (const Alias& alias : statement.aliases) {
    if (is_own) {
      Ref top = import_by_statement(alias.name, {}, 0);
      if (!top) return Flow::kRaise;
      Ref last = alias.bound.empty() ? top : loaded_module(alias.name);
      bind(alias.bound.empty() ? top_of(alias.name) : alias.bound, last ? last : opaque());
      continue;
    }
    Ref module = import_dotted(alias.name);
    if (!module) return Flow::kRaise;
    if (!alias.bound.empty()) {
      bind(alias.bound, module);
      continue;
    }
    const std::string_view top = top_of(alias.name);
    Ref first = loaded_module(top);
    bind(top, first ? first : opaque(top));
  }
  return Flow::kNext;
}

Flow Interpreter::execute_import_from(const Stmt& statement) {
  if (statement.name == "__future__" && statement.level == 0) {
    for (const Alias& alias : statement.aliases)
      bind(alias.bound.empty() ? alias.name : alias.bound, opaque());
    return Flow::kNext;
  }
  std::string name(statement.name);
  if (statement.level > 0) {
    const auto absolute = absolute_name(current_module(), statement.level, statement.name);
    if (!absolute) {
      const bool in_package = absolute_name(current_module(), 1, "").has_value();
      raise("ImportError", in_package ? "attempted relative import beyond top-level package"
                                      : "attempted relative import with no known parent package");
      return Flow::kRaise;
    }
    name = *absolute;
  }
  Ref module = own_import()
                   ? import_by_statement(statement.name, statement.aliases, statement.level)
                   : import_dotted(name);
  if (!module) return Flow::kRaise;
  for (const Alias& alias : statement.aliases) {
    if (alias.name == "*") return execute_star_import(module);
    Ref value = import_from(module, alias.name);
    if (!value) return Flow::kRaise;
    if (value->type == Type::kOpaque)
      if (Ref served = import_served(module, name, alias.name)) value = served;
    if (raised_) return Flow::kRaise;
    bind(alias.bound.empty() ? alias.name : alias.bound, value);
  }
  return Flow::kNext;
}

// A name of `__all__`: a submodule that it names is imported. What is neither is asked of the
// module as an attribute (CPython: _handle_fromlist, import_all_from).
Ref Interpreter::import_listed(Module* module, std::string_view name) {
  Ref found = import_from(module, name);
  if (found || !raised_) return found;
  const bool lacks_name =
      raised_->type && raised_->type->name == "ImportError" &&
      raised_->message.starts_with("cannot import name '" + std::string(name) + "' from ") &&
      raised_->message.find("'" + module->spec.name + "'") != std::string::npos;
  if (!lacks_name) return nullptr;
  clear_raised();
  if (may_have(*module, name, "AttributeError") ||
      (!expects("AttributeError") && is_given(*module, name)))
    return opaque(module->spec.name, name);
  return raise("AttributeError",
               fmt::format("module '{}' has no attribute '{}'", module->spec.name, name));
}

Flow Interpreter::execute_star_import(Ref value) {
  Module* module = as<Module>(value, Type::kModule);
  Module* into = current_module();
  if (!module) {
    into->open = true;
    return Flow::kNext;
  }
  if (module->open) into->open = true;
  if (module->partly_seen) (is_standard(into) ? into->partly_seen : into->open) = true;
  into->add_natives(*module);
  if (Ref all = module->names.get("__all__")) {
    if (Sequence* names = sequence_of(all)) {
      for (size_t i = 0; i < names->items.size(); i++) {
        const std::string_view* name = text_of(names->items[i]);
        if (!name) continue;
        Ref found = import_listed(module, *name);
        if (!found) return Flow::kRaise;
        bind(*name, found);
      }
      if (names->partial) into->open = true;
      // What more it has are names of native code, and may be of its own (`dir()`).
      if (!names->open || module->open || module->partly_seen) return Flow::kNext;
    } else {
      into->open = true;
    }
  }
  const bool is_sure = !module->names.contains("__all__");
  for (const auto& [name, item] : module->names) {
    if (name.empty() || name[0] == '_') continue;
    if (is_sure)
      bind(name, item);
    else if (!find_name(name))
      bind(name, opaque());
  }
  return Flow::kNext;
}

std::string text_of_error(const Raised& raised) {
  std::string words(raised.type ? raised.type->name : "an exception");
  if (!raised.message.empty()) words += ": " + raised.message;
  return words;
}

Flow Interpreter::execute_raise(const Stmt& statement) {
  if (statement.exprs.empty() || !statement.exprs[0]) {
    raised_ = handling_.empty() ? Raised{} : handling_.back();
    // Libraries that do not load raise Python's own.
    const bool is_builtin = raised_->type && !raised_->type->module;
    const bool is_sure = raised_->refused || (is_builtin && raised_is("OSError"));
    return is_sure ? Flow::kRaise : raise_if_expected();
  }
  Ref value = evaluate(*statement.exprs[0]);
  if (!value) return Flow::kRaise;
  Raised raised;
  raised.file = current_module()->spec.path;
  raised.line = statement.line;
  if (Class* type = as<Class>(value, Type::kClass)) {
    raised.type = type;
  } else if (Instance* instance = as<Instance>(value, Type::kInstance)) {
    raised.type = instance->of;
    raised.value = instance;
    if (instance->arguments && !instance->arguments->items.empty())
      raised.message = display(instance->arguments->items[0]).value_or("");
  }
  raised.declared = checks_version();
  note_refusal(raised);
  if (const auto* exit = as<Instance>(raised.value, Type::kInstance);
      exit && exit->of->name == "SystemExit" && exit->arguments && !exit->arguments->items.empty())
    note_lack(raised, exit->arguments->items[0]);
  raised.in_import = is_importing();
  raised_ = std::move(raised);
  return raise_if_expected();
}

// Whether what runs is a handler of the function, or the module, that runs.
bool Interpreter::handles_here() const {
  return !handling_.empty() && handling_.back().handled_in == frames_.size();
}

// The error that is handled here, or that has left what the branch that runs was chosen by.
const Raised* Interpreter::behind_here() const {
  if (handles_here()) return &handling_.back();
  const bool is_lacking = !behind_lacking_.empty() &&
                          behind_lacking_.back().scope == frames_.back().scope && !in_doubt();
  return is_lacking ? behind_lacking_.back().error : nullptr;
}

// A module that says it cannot be used here: at its own level, or where an import has failed. In
// functions a raise that is reached is likelier a gap in what we know.
bool Interpreter::is_refusal() const {
  if (!started_) return false;
  const auto is_top = [](const Frame& frame) {
    return frame.scope->is_module() || frame.scope->defining;
  };
  const Raised* behind = behind_here();
  const bool after_import = behind && behind->failed_import && !behind->doubted;
  return !frames_.back().doubt.any() &&
         (after_import || std::all_of(frames_.begin(), frames_.end(), is_top));
}

void Interpreter::note_refusal(Raised& raised) const {
  raised.certain = is_refusal();
  if (const Raised* behind = raised.certain ? behind_here() : nullptr) {
    raised.cause = text_of_error(*behind);
    raised.for_import = behind->failed_import || behind->refused;
  }
  raised.refused = !handling_.empty() && handling_.back().refused;
}

// An error that nobody expects is likelier a gap in what we know.
Flow Interpreter::raise_if_expected() {
  if (raised_->type && !expects(raised_->type->name) && !raised_is("ImportError") &&
      !raised_is("SystemExit") && !raised_->declared && !raised_->certain) {
    plan_.raises.push_back(
        {raised_->file, raised_->line,
         std::string(raised_->type ? raised_->type->name : "") + ": " + raised_->message});
    raised_.reset();
    frames_.back().returned = opaque_;
    return scope()->is_module() || scope()->defining ? Flow::kNext : Flow::kReturn;
  }
  effects_++;
  return Flow::kRaise;
}

// A decorator that tells nothing leaves what it decorates: most register or wrap.
Ref Interpreter::decorate(const Stmt& statement, Ref value) {
  // Code that was followed, and left a class the one it is, has no secret hand in it.
  bool is_seen = true;
  const uint64_t guesses = guesses_;
  for (size_t i = statement.decorators.size(); i-- > 0;) {
    Ref decorator = evaluate(*statement.decorators[i]);
    if (!decorator) return nullptr;
    // What an unknown decorator made of this decorator takes other arguments, and waits (scipy's
    // @_held_figure, which imports matplotlib when something is drawn).
    const auto* known = as<Function>(decorator, Type::kFunction);
    Ref result = known && known->guessed ? opaque_ : call(decorator, Arguments(arena_, {value}));
    if (!result) return nullptr;
    if (Function* function = as<Function>(value, Type::kFunction))
      function->guessed |= result->type == Type::kOpaque || result->type == Type::kNone;
    // A class made of a class (enum, attrs) is known less well than the one whose body was seen.
    is_seen = is_seen && known && result == value;
    if (result->type == Type::kClass && value->type == Type::kClass) continue;
    if (result->type != Type::kOpaque && result->type != Type::kNone) value = result;
  }
  if (Class* type = as<Class>(value, Type::kClass); type && is_seen && guesses == guesses_)
    type->decorated = false;
  return value;
}

Flow Interpreter::execute_function(const Stmt& statement) {
  Module* module = current_module();
  auto* function = make<Function>();
  function->name = statement.name;
  function->statement = &statement;
  function->parameters = statement.parameters;
  function->module = module;
  function->syntax = module->syntax;
  Scope* current = scope();
  function->owner = current->defining;
  function->outer = capture(current);
  for (const Parameter& parameter : statement.parameters) {
    Ref value = parameter.initial ? evaluate(*parameter.initial) : nullptr;
    if (parameter.initial && !value) return Flow::kRaise;
    function->defaults.push_back(value);
  }
  if (!evaluate_annotations(statement)) return Flow::kRaise;
  Ref value = function;
  if (current->is_module()) {
    if (const ModelRow* model = find_model(module->spec.name, statement.name);
        model && has_models(*module))
      value = make<Model>(model->name, model->function);
  } else if (current->defining && statement.name == "__new__") {
    function->binding = Function::kStatic;
  } else if (current->defining &&
             (statement.name == "__init_subclass__" || statement.name == "__class_getitem__")) {
    function->binding = Function::kClassMethod;
  }
  value = decorate(statement, value);
  if (!value) return Flow::kRaise;
  bind(statement.name, value);
  return Flow::kNext;
}

Flow Interpreter::execute_class(const Stmt& statement) {
  auto* type = make<Class>();
  type->name = statement.name;
  type->module = current_module();
  type->decorated = !statement.decorators.empty();
  Arguments keywords;
  for (const Expr* expression : statement.exprs) {
    if (expression->kind == ExprKind::kKeyword) {
      Ref value = evaluate(*expression->items[0]);
      if (!value) return Flow::kRaise;
      if (expression->text == "metaclass")
        type->metaclass = value;
      else if (expression->text.empty())
        type->metaclass = opaque_;
      else
        keywords.keywords.emplace_back(expression->text, value);
      continue;
    }
    Ref base =
        evaluate(expression->kind == ExprKind::kStarred ? *expression->items[0] : *expression);
    if (!base) return Flow::kRaise;
    if (Class* known = as<Class>(base, Type::kClass)) {
      type->bases.push_back(known);
      type->is_property |= known->is_property;
      type->has_setters |= known->has_setters;
    } else if (is_model(base, "builtins.property")) {
      type->is_property = true;
    } else {
      type->open = true;
    }
  }
  const RunningScope body(*this);
  body->module = current_module();
  body->outer = scope()->defining || scope()->is_module() ? scope()->outer : scope();
  body->defining = type;
  frames_.push_back({body.get(), statement.line});
  const Flow flow = execute(statement.body);
  leave_frame();
  if (flow == Flow::kRaise) return flow;
  type->names = std::move(body->own);
  if (is_standard(type->module))
    for (const ModelRow* row : models_of(fmt::format("{}.{}", type->module->spec.name, type->name)))
      type->names[last_of(row->name)] = make<Model>(row->name, row->function);
  if (!tell_names(type)) return Flow::kRaise;
  if (has_own_code_ && is_own_code(type->module)) let_out_metaclass(type);
  if (is_own_code(type->module)) members_of(type);
  for (Class* base : type->bases) {
    Ref hook = class_attribute(base, "__init_subclass__");
    if (!hook) continue;
    Ref result = call(bind_method(hook, nullptr, type), keywords);
    if (!result) return Flow::kRaise;
    break;
  }
  Ref init = type->names.get("__init__");
  Ref value = decorate(statement, type);
  if (!value) return Flow::kRaise;
  if (type->names.contains("__dataclass_fields__")) complete_data_class(type, statement, init);
  bind(statement.name, value);
  return Flow::kNext;
}

Flow Interpreter::execute_augmented(const Stmt& statement) {
  Ref old = evaluate(*statement.exprs[0]);
  if (!old) return Flow::kRaise;
  Ref value = evaluate(*statement.exprs[1]);
  if (!value) return Flow::kRaise;
  if (Ref method = own_operator(old, statement.op, true)) {
    Ref result = call(method, Arguments(arena_, {value}));
    return result && assign(*statement.exprs[0], result) ? Flow::kNext : Flow::kRaise;
  }
  if (Sequence* sequence = as<Sequence>(old, Type::kList);
      sequence && statement.op == Operator::kAdd) {
    value = iterated(value);
    if (!value) return Flow::kRaise;
    if (const auto items = elements(value)) {
      append(sequence, *items);
    } else {
      sequence->open = true;
    }
    return Flow::kNext;
  }
  if (Dict* dict = as<Dict>(old, Type::kDict); dict && statement.op == Operator::kBitOr) {
    dict_update(dict, value);
    return Flow::kNext;
  }
  Ref result = binary(statement.op, old, value);
  return result && assign(*statement.exprs[0], result) ? Flow::kNext : Flow::kRaise;
}

Flow Interpreter::execute_delete(const Stmt& statement) {
  for (const Expr* target : statement.exprs)
    if (!delete_target(*target)) return Flow::kRaise;
  return Flow::kNext;
}

namespace {

// Of an index that counts from the end where it is negative, or of a bound of a slice.
size_t place_in(int64_t index, size_t size) {
  const auto count = static_cast<int64_t>(size);
  return static_cast<size_t>(std::clamp<int64_t>(index < 0 ? index + count : index, 0, count));
}

}  // namespace

// `x[a:b] = value`, `del x[a:b]`.
bool Interpreter::assign_slice(Ref object, const Expr& slice, Ref value) {
  Sequence* target = as<Sequence>(object, Type::kList);
  bool known = target && !slice.items[2];
  size_t bounds[2] = {0, target ? target->items.size() : 0};
  for (size_t i = 0; known && i < 2; i++) {
    if (!slice.items[i]) continue;
    Ref bound = evaluate(*slice.items[i]);
    if (!bound) return false;
    const auto* number = as<Int>(bound, Type::kInt);
    known = number;
    if (number) bounds[i] = place_in(number->value, target->items.size());
  }
  effects_++;
  const auto given = elements(value);
  if (!known || !given || holds_more(value)) {
    if (Sequence* sequence = sequence_of(object)) sequence->open = true;
    return true;
  }
  const std::vector<Ref> items(given->begin(), given->end());  // it may be the list itself
  // A bound that is a call may have changed the list.
  for (size_t& bound : bounds) bound = std::min(bound, target->items.size());
  const auto at = [&](size_t place) {
    return target->items.begin() + static_cast<std::ptrdiff_t>(place);
  };
  target->items.erase(at(bounds[0]), at(std::max(bounds[0], bounds[1])));
  target->items.insert(at(bounds[0]), items.begin(), items.end());
  return true;
}

bool Interpreter::delete_target(const Expr& target) {
  switch (target.kind) {
    case ExprKind::kName:
      scope()->names->erase(target.text);
      return true;
    case ExprKind::kTuple:
    case ExprKind::kList:
      for (const Expr* item : target.items)
        if (!delete_target(*item)) return false;
      return true;
    case ExprKind::kAttribute: {
      Ref object = evaluate(*target.items[0]);
      if (!object) return false;
      if (Module* module = as<Module>(object, Type::kModule)) module->names.erase(target.text);
      if (auto* instance = as<Instance>(object, Type::kInstance))
        instance->names.erase(target.text);
      if (auto* type = as<Class>(object, Type::kClass)) type->names.erase(target.text);
      return true;
    }
    case ExprKind::kSubscript: {
      Ref object = evaluate(*target.items[0]);
      if (object && target.items[1]->kind == ExprKind::kSlice)
        return assign_slice(object, *target.items[1], list({}));
      Ref key = object ? evaluate(*target.items[1]) : nullptr;
      if (!key) return false;
      if (Dict* dict = as<Dict>(object, Type::kDict)) dict_erase(dict, key);
      if (Sequence* items = as<Sequence>(object, Type::kList)) {
        const auto* index = as<Int>(key, Type::kInt);
        const auto at = index ? place_in(index->value, items->items.size()) : 0;
        if (index && at < items->items.size())
          items->items.erase(items->items.begin() + static_cast<std::ptrdiff_t>(at));
        else
          items->open = true;
      }
      return true;
    }
    default:
      return true;
  }
}

// Something unknown that is told the module's name, and whose result nobody wants, may give names
// to the module: enum's metaclass does, for ssl (`IntEnum._convert_('Options', __name__, ...)`).
Flow Interpreter::execute_expression(const Expr& expression) {
  const Ref value = evaluate(expression);
  if (!value) return Flow::kRaise;
  if (value->type != Type::kOpaque || expression.kind != ExprKind::kCall) return Flow::kNext;
  const bool is_told =
      std::any_of(expression.items.begin() + 1, expression.items.end(), [](const Expr* argument) {
        return argument->kind == ExprKind::kName && argument->text == "__name__";
      });
  if (Module* module = current_module(); module && is_told) module->open = true;
  return Flow::kNext;
}

void Interpreter::bind(std::string_view name, Ref value) {
  Scope* current = scope();
  const auto listed = [name](const auto& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (!current->globals.empty() && listed(current->globals)) {
    current->module->names[name] = value;
    return;
  }
  if (!current->nonlocals.empty() && listed(current->nonlocals)) {
    for (Scope* outer = current->outer; outer; outer = outer->outer)
      if (outer->names->contains(name)) {
        (*outer->names)[name] = value;
        return;
      }
  }
  (*current->names)[name] = value;
}

bool Interpreter::unpack(const Expr& target, Ref value) {
  if (auto* tuple = as<Instance>(value, Type::kInstance); tuple && !is_own_code(tuple->of->module))
    let_out(tuple);  // a namedtuple: what is in it is not found
  value = iterated(value);
  if (!value) return false;
  const auto items = elements(value);
  const size_t count = target.items.size();
  size_t starred = count;
  for (size_t i = 0; i < count; i++)
    if (target.items[i]->kind == ExprKind::kStarred) starred = i;
  const bool fits =
      items && (starred == count ? items->size() == count : items->size() + 1 >= count);
  if (items && !fits && !holds_more(value) && expects("ValueError")) {
    raise("ValueError", "another number of values to unpack");
    return false;
  }
  for (size_t i = 0; i < count; i++) {
    const Expr& part = *target.items[i];
    if (!fits) {
      if (!assign(part.kind == ExprKind::kStarred ? *part.items[0] : part, opaque())) return false;
      continue;
    }
    if (i < starred) {
      if (!assign(part, (*items)[i])) return false;
    } else if (i == starred) {
      const size_t after = count - 1 - starred;
      const auto rest = items->subspan(starred, items->size() - after - starred);
      if (!assign(*part.items[0], list(rest))) return false;
    } else if (!assign(part, (*items)[items->size() - (count - i)])) {
      return false;
    }
  }
  return true;
}

bool Interpreter::assign(const Expr& target, Ref value) {
  switch (target.kind) {
    case ExprKind::kName:
      bind(target.text, value);
      return true;
    case ExprKind::kTuple:
    case ExprKind::kList:
      return unpack(target, value);
    case ExprKind::kStarred:
      return assign(*target.items[0], value);
    case ExprKind::kAttribute: {
      Ref object = evaluate(*target.items[0]);
      return object && set_attribute(object, target.text, value);
    }
    case ExprKind::kSubscript: {
      Ref object = evaluate(*target.items[0]);
      if (!object) return false;
      if (target.items[1]->kind == ExprKind::kSlice)
        return assign_slice(object, *target.items[1], value);
      Ref key = evaluate(*target.items[1]);
      return key && set_item(object, key, value);
    }
    default:
      return true;
  }
}

}  // namespace cohabit::python
