// Statements of one line, and how lines make blocks.
#include "imports/parser.h"

namespace cohabit::python {

// All there are up to the end of the text.
Block Parser::parse_statements() {
  Gather<const Stmt*> block(*this, statements_);
  while (!at(TokenKind::kEnd)) parse_statement(block);
  return block.take();
}

// What stands behind the colon of a def on its line.
Block Parser::parse_simple_suite() {
  Gather<const Stmt*> block(*this, statements_);
  parse_simple_line(block);
  if (!at(TokenKind::kEnd)) fail("invalid syntax");
  return block.take();
}

// Behind a colon: an indented block, or statements on the same line.
Block Parser::parse_block() {
  Gather<const Stmt*> block(*this, statements_);
  if (!accept(TokenKind::kNewline)) {
    parse_simple_line(block);
    return block.take();
  }
  expect(TokenKind::kIndent, "an indented block");
  while (!at(TokenKind::kDedent) && !failed_) parse_statement(block);
  advance();
  return block.take();
}

void Parser::parse_statement(Gather<const Stmt*>& block) {
  if (at(TokenKind::kIndent)) fail("unexpected indent");
  const Level level(*this);
  const Stmt* statement = parse_compound();
  if (statement == nullptr)
    parse_simple_line(block);
  else if (!failed_)
    block.add(statement);
}

void Parser::parse_simple_line(Gather<const Stmt*>& block) {
  do {
    const Stmt* statement = parse_simple();
    if (failed_) return;
    if (!at(TokenKind::kSemicolon) && !at(TokenKind::kNewline)) {
      fail_behind(*statement);
      return;
    }
    block.add(statement);
  } while (accept(TokenKind::kSemicolon) && !at(TokenKind::kNewline));
  expect(TokenKind::kNewline, "the end of the line");
}

// The most frequent reason: Python 2.
void Parser::fail_behind(const Stmt& statement) {
  const bool is_name = statement.kind == StmtKind::kExpression && statement.exprs[0] != nullptr &&
                       statement.exprs[0]->kind == ExprKind::kName;
  const std::string_view name = is_name ? statement.exprs[0]->text : "";
  if (name == "print" || name == "exec")
    fail("missing parentheses in call to '" + std::string(name) + "'");
  else
    fail("invalid syntax");
}

const Stmt* Parser::parse_simple() {
  switch (token_.kind) {
    case TokenKind::kPass:
      return parse_keyword_only(StmtKind::kPass);
    case TokenKind::kBreak:
      return parse_keyword_only(StmtKind::kBreak);
    case TokenKind::kContinue:
      return parse_keyword_only(StmtKind::kContinue);
    case TokenKind::kReturn:
      return parse_return();
    case TokenKind::kRaise:
      return parse_raise();
    case TokenKind::kAssert:
      return parse_assert();
    case TokenKind::kDel:
      return parse_delete();
    case TokenKind::kGlobal:
      return parse_names(StmtKind::kGlobal);
    case TokenKind::kNonlocal:
      return parse_names(StmtKind::kNonlocal);
    case TokenKind::kImport:
      return parse_import();
    case TokenKind::kFrom:
      return parse_import_from();
    default:
      return at_type_alias() ? parse_type_alias() : parse_expression_statement();
  }
}

const Stmt* Parser::parse_keyword_only(StmtKind kind) {
  const Stmt* statement = statement_node(kind, token_.line);
  advance();
  return statement;
}

const Stmt* Parser::parse_expression_statement() {
  const uint32_t line = token_.line;
  const Expr* expr = parse_yield_or_star_expressions();
  if (at(TokenKind::kAssign)) return parse_assignment(expr, line);
  if (at(TokenKind::kAugmented)) return parse_augmented(expr, line);
  if (at(TokenKind::kColon)) return parse_annotated(expr, line);
  Stmt* statement = statement_node(StmtKind::kExpression, line);
  statement->exprs = keep({expr});
  return statement;
}

const Stmt* Parser::parse_assignment(const Expr* first, uint32_t line) {
  Exprs exprs(*this, exprs_);
  exprs.add(first);
  while (accept(TokenKind::kAssign)) {
    check_target(exprs.back(), "assign to");
    exprs.add(parse_yield_or_star_expressions());
  }
  Stmt* statement = statement_node(StmtKind::kAssign, line);
  statement->exprs = exprs.take();
  return statement;
}

const Stmt* Parser::parse_augmented(const Expr* target, uint32_t line) {
  if (!is_single_target(target)) fail("illegal expression for augmented assignment");
  Stmt* statement = statement_node(StmtKind::kAugmented, line);
  statement->op = token_.augmented;
  advance();
  statement->exprs = keep({target, parse_yield_or_star_expressions()});
  return statement;
}

bool Parser::is_single_target(const Expr* target) {
  return target->kind == ExprKind::kName || target->kind == ExprKind::kAttribute ||
         target->kind == ExprKind::kSubscript;
}

const Stmt* Parser::parse_annotated(const Expr* target, uint32_t line) {
  if (!is_single_target(target)) fail("invalid syntax");
  advance();
  const Expr* annotation = parse_expression();
  const Expr* value = accept(TokenKind::kAssign) ? parse_yield_or_star_expressions() : nullptr;
  Stmt* statement = statement_node(StmtKind::kAnnotated, line);
  statement->exprs = keep({target, annotation, value});
  return statement;
}

const Stmt* Parser::parse_return() {
  Stmt* statement = statement_node(StmtKind::kReturn, token_.line);
  advance();
  statement->exprs = keep({at_expression() ? parse_star_expressions() : nullptr});
  return statement;
}

const Stmt* Parser::parse_raise() {
  Stmt* statement = statement_node(StmtKind::kRaise, token_.line);
  advance();
  const Expr* exception = at_expression() ? parse_expression() : nullptr;
  const Expr* cause =
      exception != nullptr && accept(TokenKind::kFrom) ? parse_expression() : nullptr;
  statement->exprs = keep({exception, cause});
  return statement;
}

const Stmt* Parser::parse_assert() {
  Stmt* statement = statement_node(StmtKind::kAssert, token_.line);
  advance();
  const Expr* condition = parse_expression();
  const Expr* message = accept(TokenKind::kComma) ? parse_expression() : nullptr;
  statement->exprs = keep({condition, message});
  return statement;
}

const Stmt* Parser::parse_delete() {
  Stmt* statement = statement_node(StmtKind::kDelete, token_.line);
  advance();
  Exprs targets(*this, exprs_);
  do {
    if (targets.size() > 0 && !at_expression()) break;
    targets.add(parse_primary());
    check_target(targets.back(), "delete");
  } while (accept(TokenKind::kComma));
  statement->exprs = targets.take();
  return statement;
}

const Stmt* Parser::parse_names(StmtKind kind) {
  Stmt* statement = statement_node(kind, token_.line);
  advance();
  Gather<std::string_view> names(*this, names_);
  do names.add(take_name("a name"));
  while (accept(TokenKind::kComma));
  statement->names = names.take();
  return statement;
}

const Stmt* Parser::parse_import() {
  Stmt* statement = statement_node(StmtKind::kImport, token_.line);
  advance();
  Gather<Alias> aliases(*this, aliases_);
  do aliases.add(parse_alias(true));
  while (accept(TokenKind::kComma));
  statement->aliases = aliases.take();
  return statement;
}

Alias Parser::parse_alias(bool dotted) {
  Alias alias;
  alias.name = dotted ? parse_dotted_name() : take_name("a name");
  if (accept(TokenKind::kAs)) alias.bound = take_name("a name after 'as'");
  return alias;
}

// A view of the text, unless there are blanks around its dots.
std::string_view Parser::parse_dotted_name() {
  const uint32_t begin = token_.begin;
  uint32_t end = token_.end;
  size_t size = take_name("a name").size();
  while (accept(TokenKind::kDot)) {
    end = token_.end;
    size += 1 + take_name("a name after '.'").size();
  }
  const std::string_view name = text_.substr(begin, end - begin);
  if (failed_ || name.size() == size) return name;
  std::string& joined = syntax_.strings_.emplace_back();
  for (const char c : name)
    if (c != ' ' && c != '\t' && c != '\f' && c != '\\' && c != '\n') joined += c;
  return joined;
}

const Stmt* Parser::parse_import_from() {
  Stmt* statement = statement_node(StmtKind::kImportFrom, token_.line);
  advance();
  for (; at(TokenKind::kDot) || at(TokenKind::kEllipsis); advance())
    statement->level += at(TokenKind::kDot) ? 1 : 3;
  if (statement->level == 0 || at(TokenKind::kName)) statement->name = parse_dotted_name();
  expect(TokenKind::kImport, "'import'");
  Gather<Alias> aliases(*this, aliases_);
  parse_imported_names(aliases);
  statement->aliases = aliases.take();
  if (statement->name == "__future__" && statement->level == 0)
    for (const Alias& alias : statement->aliases)
      if (alias.name == "annotations") syntax_.keeps_annotations_ = true;
  return statement;
}

void Parser::parse_imported_names(Gather<Alias>& aliases) {
  if (at(TokenKind::kStar)) {
    aliases.add({.name = text(token_), .bound = {}});
    advance();
    return;
  }
  const bool in_parentheses = accept(TokenKind::kOpenParen);
  do {
    if (in_parentheses && aliases.size() > 0 && at(TokenKind::kCloseParen)) break;
    aliases.add(parse_alias(false));
  } while (accept(TokenKind::kComma));
  if (in_parentheses) expect(TokenKind::kCloseParen, "')'");
}

// "type" is a keyword only before a name on the same line.
bool Parser::at_type_alias() const {
  if (!at_name("type")) return false;
  Lexer ahead = lexer_;
  return ahead.next().kind == TokenKind::kName;
}

const Stmt* Parser::parse_type_alias() {
  Stmt* statement = statement_node(StmtKind::kTypeAlias, token_.line);
  note_newer(12, token_.line);
  advance();
  statement->name = take_name("a name");
  parse_type_parameters();
  expect(TokenKind::kAssign, "'='");
  statement->exprs = keep({parse_expression()});
  return statement;
}

}  // namespace cohabit::python
