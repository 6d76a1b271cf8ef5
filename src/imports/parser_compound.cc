// Statements that have blocks, but for definitions and match.
#include <utility>

#include "imports/parser.h"

namespace cohabit::python {

// Null when a simple statement follows.
const Stmt* Parser::parse_compound() {
  switch (token_.kind) {
    case TokenKind::kIf:
      return parse_if();
    case TokenKind::kWhile:
      return parse_while();
    case TokenKind::kFor:
      return parse_for(false);
    case TokenKind::kTry:
      return parse_try();
    case TokenKind::kWith:
      return parse_with(false);
    case TokenKind::kDef:
    case TokenKind::kClass:
      return parse_definition({});
    case TokenKind::kAsync:
      return parse_async();
    case TokenKind::kAt:
      return parse_decorated();
    default:
      return at_match() ? parse_match() : nullptr;
  }
}

Block Parser::parse_suite(std::string_view what) {
  expect(TokenKind::kColon, what);
  return parse_block();
}

Block Parser::parse_else() {
  return accept(TokenKind::kElse) ? parse_suite("':'") : Block();
}

// Also from "elif", which is an if of its own in the else of the former.
const Stmt* Parser::parse_if() {
  const Level level(*this);
  Stmt* statement = statement_node(StmtKind::kIf, token_.line);
  advance();
  statement->exprs = keep({parse_named_expression()});
  statement->body = parse_suite("':'");
  if (at(TokenKind::kElif)) {
    const Stmt* other = parse_if();
    statement->orelse = keep(std::span<const Stmt* const>(&other, 1));
  } else {
    statement->orelse = parse_else();
  }
  return statement;
}

const Stmt* Parser::parse_while() {
  Stmt* statement = statement_node(StmtKind::kWhile, token_.line);
  advance();
  statement->exprs = keep({parse_named_expression()});
  statement->body = parse_suite("':'");
  statement->orelse = parse_else();
  return statement;
}

const Stmt* Parser::parse_for(bool is_async) {
  Stmt* statement = statement_node(StmtKind::kFor, token_.line);
  statement->is_async = is_async;
  advance();
  const Expr* target = parse_target_list();
  expect(TokenKind::kIn, "'in'");
  statement->exprs = keep({target, parse_star_expressions()});
  statement->body = parse_suite("':'");
  statement->orelse = parse_else();
  return statement;
}

const Stmt* Parser::parse_try() {
  Stmt* statement = statement_node(StmtKind::kTry, token_.line);
  advance();
  statement->body = parse_suite("':'");
  Gather<Handler> handlers(*this, handlers_);
  while (at(TokenKind::kExcept)) {
    bool is_star = false;
    handlers.add(parse_handler(is_star));
    if (handlers.size() > 1 && is_star != statement->is_star)
      fail("cannot have both 'except' and 'except*' on the same 'try'");
    statement->is_star = is_star;
  }
  statement->handlers = handlers.take();
  if (!statement->handlers.empty()) statement->orelse = parse_else();
  if (accept(TokenKind::kFinally))
    statement->finally = parse_suite("':'");
  else if (statement->handlers.empty())
    fail("expected 'except' or 'finally' block");
  return statement;
}

Handler Parser::parse_handler(bool& is_star) {
  Handler handler;
  advance();
  if (at(TokenKind::kStar)) note_newer(11, token_.line);
  is_star = accept(TokenKind::kStar);
  if (is_star || !at(TokenKind::kColon)) {
    handler.type = parse_exceptions();
    if (accept(TokenKind::kAs)) handler.name = take_name("a name after 'as'");
  }
  handler.body = parse_suite("':'");
  return handler;
}

// As of Python 3.14 several need no parentheses, unless they get a name.
const Expr* Parser::parse_exceptions() {
  const uint32_t line = token_.line;
  const Expr* first = parse_expression();
  if (!at(TokenKind::kComma)) return first;
  note_newer(14, line);
  Exprs items(*this, exprs_);
  items.add(first);
  while (accept(TokenKind::kComma) && at_expression()) items.add(parse_expression());
  if (at(TokenKind::kAs)) fail("multiple exception types must be parenthesized");
  return node(ExprKind::kTuple, line, items.take());
}

const Stmt* Parser::parse_with(bool is_async) {
  Stmt* statement = statement_node(StmtKind::kWith, token_.line);
  statement->is_async = is_async;
  advance();
  Exprs items(*this, exprs_);
  if (!at(TokenKind::kOpenParen) || !parse_with_parentheses(items)) {
    do parse_with_item(items);
    while (accept(TokenKind::kComma));
  }
  statement->exprs = items.take();
  statement->body = parse_suite("':'");
  return statement;
}

// "(" item, item... ")" ":" holds items. Without that colon, or with what no item can be, it starts
// an expression, which is left for parse_atom; then false.
bool Parser::parse_with_parentheses(Exprs& items) {
  Token opening = token_;
  bool has_target = false, has_comma = false, is_expression = false;
  advance();
  while (!at(TokenKind::kCloseParen) && !failed_) {
    const bool is_yield = at(TokenKind::kYield);
    const uint32_t begin = token_.begin;
    const Expr* item = is_yield ? parse_yield() : parse_star_expression(true);
    is_expression = is_expression || is_yield || !is_plain(item, begin);
    if (at_comprehension()) item = parse_comprehension(ExprKind::kGenerator, opening.line, {item});
    items.add(item);
    items.add(accept(TokenKind::kAs) ? parse_with_target() : nullptr);
    has_target = has_target || items.back() != nullptr;
    if (!accept(TokenKind::kComma)) break;
    has_comma = true;
  }
  expect(TokenKind::kCloseParen, "')'");
  if (at(TokenKind::kColon) && items.size() > 0 && !is_expression) {
    if (has_target) note_newer(9, opening.line);
    return true;
  }
  if (has_target) fail("invalid syntax");
  opening.kind = TokenKind::kParsed;
  following_ = std::exchange(token_, opening);
  parsed_ = make_group(items, opening.line, has_comma);
  items.clear();
  return false;
}

// Of items that turned out to be those of a tuple, or the only one in parentheses.
const Expr* Parser::make_group(const Exprs& items, uint32_t line, bool has_comma) {
  if (items.size() == 2 && !has_comma) {
    if (items[0]->kind == ExprKind::kStarred) fail("cannot use starred expression here");
    return items[0];
  }
  Exprs elements(*this, exprs_);
  for (size_t i = 0; i < items.size(); i += 2) elements.add(items[i]);
  return node(ExprKind::kTuple, line, elements.take());
}

void Parser::parse_with_item(Exprs& items) {
  items.add(parse_expression());
  items.add(accept(TokenKind::kAs) ? parse_with_target() : nullptr);
}

const Expr* Parser::parse_with_target() {
  const Expr* target = parse_star_target();
  if (!at(TokenKind::kComma) && !at(TokenKind::kColon) && !at(TokenKind::kCloseParen))
    fail("invalid syntax");
  return target;
}

}  // namespace cohabit::python
