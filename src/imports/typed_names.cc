// Names that a package serves when they are asked for. What its code does then is often beyond us
// (it reads its own files, keeps tables by what is installed); but such a package tells type
// checkers in an `if TYPE_CHECKING:` block or in a stub beside it (lazy_loader.attach_stub) where
// each name comes from (PEP 484, PEP 562), and that is what it does.
#include <algorithm>

#include "imports/imported_names.h"
#include "imports/interpreter.h"

namespace cohabit::python {
namespace {

constexpr int kMostFiles = 4000;  // looked through for one name

// `TYPE_CHECKING`, or that or a variable of the package's own (`TYPE_CHECKING or SLOW_IMPORT`).
bool is_type_checking(const Expr& condition) {
  if (condition.kind == ExprKind::kBool && condition.op == Operator::kOr)
    return std::any_of(condition.items.begin(), condition.items.end(),
                       [](const Expr* part) { return part && is_type_checking(*part); });
  return (condition.kind == ExprKind::kName || condition.kind == ExprKind::kAttribute) &&
         condition.text == "TYPE_CHECKING";
}

bool is_type_checking(const Stmt& statement) {
  return statement.kind == StmtKind::kIf && !statement.exprs.empty() && statement.exprs[0] &&
         is_type_checking(*statement.exprs[0]);
}

// What a block takes from modules, where nothing is missing: handlers have what stands in for that.
void add_imports(Block block, std::vector<const Stmt*>& found) {
  for (const Stmt* statement : block) {
    if (statement->kind == StmtKind::kImportFrom) found.push_back(statement);
    if (statement->kind != StmtKind::kIf && statement->kind != StmtKind::kTry) continue;
    add_imports(statement->body, found);
    add_imports(statement->orelse, found);
  }
}

bool makes_name(const Stmt& statement, std::string_view name) {
  if (statement.kind == StmtKind::kFunction || statement.kind == StmtKind::kClass)
    return statement.name == name;
  if (statement.kind != StmtKind::kAssign && statement.kind != StmtKind::kAnnotated) return false;
  const size_t targets = statement.kind == StmtKind::kAssign ? statement.exprs.size() - 1 : 1;
  return std::any_of(statement.exprs.begin(),
                     statement.exprs.begin() + static_cast<ptrdiff_t>(targets),
                     [&](const Expr* target) {
                       return target && target->kind == ExprKind::kName && target->text == name;
                     });
}

}  // namespace

// Where this file tells type checkers that a name is, or makes it itself.
std::optional<Interpreter::TypedName> Interpreter::typed_name(const ModuleSpec& file,
                                                              std::string_view name, int& left) {
  if (file.kind != ModuleKind::kSource || left-- <= 0) return std::nullopt;
  if (!file.is_package()) {
    const auto text = tree().read_text(file.path);
    if (!text || text->find(name) == text->npos) return std::nullopt;
  }
  const Syntax* syntax = parse(file.path);
  if (!syntax) return std::nullopt;
  std::vector<const Stmt*> imports;
  for (const Stmt* statement : syntax->module()) {
    if (makes_name(*statement, name)) return TypedName{file.name, std::string(name)};
    if (is_type_checking(*statement)) add_imports(statement->body, imports);
  }
  if (const Syntax* stub = stub_of(file)) add_imports(stub->module(), imports);
  std::vector<std::string> whole;  // modules of which all names are taken
  for (const Stmt* import : imports) {
    const auto origin = absolute_import(file.package(), import->level, import->name);
    if (!origin) continue;
    for (const Alias& alias : import->aliases) {
      if (alias.name == "*") whole.push_back(*origin);
      if ((alias.bound.empty() ? alias.name : alias.bound) == name)
        return TypedName{*origin, std::string(alias.name)};
    }
  }
  for (const std::string& origin : whole) {
    const auto found = finder_.find_dotted(origin);
    if (!found) continue;
    if (auto typed = typed_name(*found, name, left)) return typed;
  }
  return std::nullopt;
}

// The stub beside a package's file; null: it has none.
const Syntax* Interpreter::stub_of(const ModuleSpec& file) {
  if (!file.is_package() || !file.path.ends_with(".py")) return nullptr;
  const std::string path = file.path + "i";
  return tree().stat(path) ? parse(path) : nullptr;
}

bool Interpreter::serves_on_demand(Ref module, std::string_view name) const {
  if (Module* plain = as<Module>(module, Type::kModule)) {
    // Of a name that a skipped branch would have made no more is known than that.
    const auto* known = as<Opaque>(plain->names.get(name), Type::kOpaque);
    return plain->names.contains("__getattr__") &&
           (!plain->names.contains(name) || (known && known->name.empty()));
  }
  Instance* replaced = as<Instance>(module, Type::kInstance);
  return replaced && !replaced->names.contains(name) &&
         class_attribute(replaced->of, "__getattr__") != nullptr;
}

Ref Interpreter::import_served(Ref module, const std::string& full, std::string_view name) {
  if (!serves_on_demand(module, name)) return nullptr;
  const auto file = finder_.find_dotted(full);
  int left = kMostFiles;
  const auto typed = file ? typed_name(*file, name, left) : std::nullopt;
  if (!typed) return nullptr;
  if (typed->module == full) {
    const std::string below = full + "." + typed->name;
    return typed->name != "*" && finder_.find(below, search_of(module, full)) ? import_dotted(below)
                                                                              : nullptr;
  }
  // What it refuses is told when the name is used: such a package has something in its place.
  Ref home = import_dotted(typed->module);
  Ref value = home ? import_from(home, typed->name) : nullptr;
  // But for a library that the loader does not take, nothing can stand in.
  const bool is_refused = raised_ && (raised_->refused || raised_is("OSError"));
  if (!value && !is_refused) clear_raised();
  if (home && value && value->type == Type::kOpaque)
    if (Ref further = import_served(home, typed->module, typed->name)) return further;
  return value;
}

}  // namespace cohabit::python
