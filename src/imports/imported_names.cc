#include "imports/imported_names.h"

#include <algorithm>
#include <array>

namespace cohabit::python {
namespace {

constexpr int kMaxNested = 4;  // exec("exec('...')")
constexpr std::array<std::string_view, 2> kRunText = {"exec", "eval"};
constexpr std::array<std::string_view, 4> kRunModule = {"__import__", "import_module", "run_module",
                                                        "run_path"};

template <size_t N>
bool is_one_of(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// By the names that it is written with.
bool names_import_error(const Expr& type) {
  constexpr std::array<std::string_view, 4> kCatching = {"ImportError", "ModuleNotFoundError",
                                                         "Exception", "BaseException"};
  if (type.kind == ExprKind::kName) return is_one_of(kCatching, type.text);
  return type.kind == ExprKind::kTuple &&
         std::any_of(type.items.begin(), type.items.end(),
                     [](const Expr* item) { return item && names_import_error(*item); });
}

bool catches_import_error(const Handler& handler) {
  return !handler.type || names_import_error(*handler.type);
}

class Collector {
 public:
  Collector(const Syntax& syntax, std::string_view package, int nested, ImportedNames& found)
      : syntax_(syntax), package_(package), nested_(nested), found_(found) {}

  void visit(Block block) {
    for (const Stmt* one : block) visit(*one);
  }

 private:
  void visit(const Stmt& one) {
    if (one.kind == StmtKind::kImport)
      for (const Alias& alias : one.aliases) add({std::string(alias.name), {}});
    if (one.kind == StmtKind::kImportFrom) add_from(one);
    for (const Expr* expression : one.exprs) visit(expression);
    for (const Expr* decorator : one.decorators) visit(decorator);
    visit(one.parameters);
    const bool catches =
        std::any_of(one.handlers.begin(), one.handlers.end(), catches_import_error);
    caught_ += catches ? 1 : 0;
    visit(one.body);
    caught_ -= catches ? 1 : 0;
    for (const Block inner : {one.orelse, one.finally}) visit(inner);
    for (const Handler& handler : one.handlers) {
      visit(handler.type);
      visit(handler.body);
    }
    for (const Case& match : one.cases) {
      visit(match.guard);
      visit(match.body);
    }
    if (one.kind == StmtKind::kFunction) {
      const size_t before = found_.names.size();
      visit(syntax_.body_of(one));
      found_.all_run = found_.all_run && found_.names.size() == before;
    }
  }

  void visit(std::span<const Parameter> parameters) {
    for (const Parameter& parameter : parameters) visit(parameter.initial);
  }

  void visit(const Expr* expression) {
    if (!expression) return;
    if (expression->kind == ExprKind::kCall) add_call(*expression);
    visit(expression->parameters);
    for (const Expr* item : expression->items) visit(item);
  }

  void add_from(const Stmt& one) {
    auto module = absolute_import(package_, one.level, one.name);
    if (!module) return;  // Python raises an ImportError
    ImportedName name{std::move(*module), {}};
    for (const Alias& alias : one.aliases)
      if (alias.name != "*") name.members.emplace_back(alias.name);
    add(std::move(name));
  }

  void add(ImportedName name) {
    name.may_fail = caught_ > 0;
    found_.names.push_back(std::move(name));
  }

  // exec and eval only by their own names: `model.eval()` runs no text.
  void add_call(const Expr& call) {
    const Expr& callee = *call.items[0];
    const bool runs_text = callee.kind == ExprKind::kName && is_one_of(kRunText, callee.text);
    const bool runs_module =
        (callee.kind == ExprKind::kName || callee.kind == ExprKind::kAttribute) &&
        is_one_of(kRunModule, callee.text);
    if (!runs_text && !runs_module) return;
    const Expr* first = call.items.size() > 1 ? call.items[1] : nullptr;
    const bool known = first && first->kind == ExprKind::kString && nested_ < kMaxNested;
    if (runs_text && known) {
      const Syntax inner{std::string(first->text)};
      Collector(inner, package_, nested_ + 1, found_).visit(inner.module());
    } else if (known && callee.text != "run_path" && !first->text.starts_with('.')) {
      add({std::string(first->text), {}});
    } else {
      found_.complete = false;
    }
  }

  const Syntax& syntax_;
  const std::string_view package_;
  const int nested_;
  ImportedNames& found_;
  int caught_ = 0;  // levels of `try` that catch an ImportError
};

}  // namespace

ImportedNames imported_names(const Syntax& syntax, std::string_view package) {
  ImportedNames found;
  Collector(syntax, package, 0, found).visit(syntax.module());
  return found;
}

std::optional<std::string> absolute_import(std::string_view package, uint32_t level,
                                           std::string_view name) {
  if (level == 0) return std::string(name);
  for (uint32_t i = 1; i < level && !package.empty(); i++) {
    const size_t dot = package.rfind('.');
    package = dot == package.npos ? std::string_view() : package.substr(0, dot);
  }
  if (package.empty()) return std::nullopt;
  std::string module(package);
  if (!name.empty()) module.append(".").append(name);
  return module;
}

}  // namespace cohabit::python
