#include "imports/parser.h"

#include <algorithm>

#include "imports/source_text.h"

namespace cohabit::python {

Parser::Parser(const Syntax& syntax, const LazyBody& body, bool whole_lines)
    : syntax_(syntax), text_(syntax.text_), lexer_(text_, body, whole_lines) {
  if (body.level >= kMaxIndents) fail("too deeply nested");
  advance();
}

bool Parser::at_name(std::string_view name) const {
  return at(TokenKind::kName) && text(token_) == name;
}

bool Parser::accept(TokenKind kind) {
  if (!at(kind)) return false;
  advance();
  return true;
}

void Parser::expect(TokenKind kind, std::string_view what) {
  if (!accept(kind)) fail("expected " + std::string(what));
}

void Parser::advance() {
  if (failed_) return;
  token_ = lexer_.next();
  if (at(TokenKind::kError)) fail(lexer_.error());
}

// Only the first error counts: what follows it would be guesses.
void Parser::fail(std::string message) {
  if (!failed_) syntax_.errors_.push_back({token_.line, std::move(message)});
  failed_ = true;
  token_.kind = TokenKind::kEnd;
  token_.op = token_.augmented = Operator::kNoOperator;
}

// What was parsed came with Python 3.minor. Only the first of each counts.
void Parser::note_newer(int minor, uint32_t line) {
  for (const Syntax::Newer& one : syntax_.newer_)
    if (one.minor == minor) return;
  syntax_.newer_.push_back({minor, line});
}

Expr* Parser::node(ExprKind kind, uint32_t line) {
  Expr* expr = syntax_.nodes_.make<Expr>();
  expr->kind = kind;
  expr->line = line;
  return expr;
}

Expr* Parser::node(ExprKind kind, uint32_t line, std::span<const Expr* const> items) {
  Expr* expr = node(kind, line);
  expr->items = items;
  uint16_t depth = 0;
  for (const Expr* item : items)
    if (item != nullptr) depth = std::max(depth, item->depth);
  expr->depth = static_cast<uint16_t>(depth + 1);
  if (expr->depth >= kMaxDepth) {
    fail("too deeply nested");
    expr->items = {};
    expr->depth = 0;
  }
  return expr;
}

Expr* Parser::node(ExprKind kind, uint32_t line, std::initializer_list<const Expr*> items) {
  return node(kind, line, keep(items));
}

std::span<const Expr* const> Parser::keep(std::initializer_list<const Expr*> items) {
  return keep(std::span<const Expr* const>(items.begin(), items.size()));
}

Stmt* Parser::statement_node(StmtKind kind, uint32_t line) {
  Stmt* statement = syntax_.nodes_.make<Stmt>();
  statement->kind = kind;
  statement->line = line;
  return statement;
}

namespace {

// A file that was cut short ends in the function that it was cut in, if in any.
void parse_last_function(const Syntax& syntax) {
  for (Block block = syntax.module(); !block.empty();) {
    const Stmt& last = *block.back();
    block = syntax.body_of(last);
    for_each_block(last, [&](Block inner) {
      if (!inner.empty()) block = inner;
    });
  }
}

}  // namespace

Syntax::Syntax(std::string text, Arena* nodes)
    : text_(std::move(text)),
      own_nodes_(nodes ? nullptr : std::make_unique<Arena>()),
      nodes_(nodes ? *nodes : *own_nodes_) {
  const std::string_view problem = make_source_text(text_, stray_);
  if (!problem.empty()) {
    errors_.push_back({1, std::string(problem)});
    text_.clear();
    return;
  }
  LazyBody whole;
  whole.end = static_cast<uint32_t>(text_.size());
  whole.line = 1;
  module_ = Parser(*this, whole, true).parse_statements();
  if (stray_.line > 0) parse_functions(module_);
  parse_last_function(*this);
}

std::optional<SyntaxError> Syntax::first_error(int minor) const {
  std::optional<SyntaxError> first;
  const auto add = [&](uint32_t line, std::string_view message) {
    if (!first || line < first->line) first = {line, std::string(message)};
  };
  for (const SyntaxError& error : errors_) add(error.line, error.message);
  for (const Newer& one : newer_)
    if (one.minor > minor) add(one.line, "invalid syntax");
  return first;
}

void Syntax::parse_functions(Block block) const {
  for (const Stmt* statement : block) {
    parse_functions(body_of(*statement));
    for_each_block(*statement, [&](Block inner) { parse_functions(inner); });
  }
}

Block Syntax::body_of(const Stmt& function) const {
  LazyBody* lazy = function.lazy;
  if (lazy == nullptr) return {};
  if (!lazy->parsed) {
    lazy->parsed = true;
    // A suite on the line of its "def" starts behind the colon.
    const bool whole_lines = text_[lazy->begin - 1] == '\n';
    Parser parser(*this, *lazy, whole_lines);
    lazy->block = whole_lines ? parser.parse_statements() : parser.parse_simple_suite();
  }
  return lazy->block;
}

std::string_view Syntax::text_of(const Stmt& function) const {
  if (function.lazy == nullptr) return "";
  return std::string_view(text_).substr(function.lazy->begin,
                                        function.lazy->end - function.lazy->begin);
}

}  // namespace cohabit::python
