// Names, numbers and what stands in brackets: displays, comprehensions, arguments; and targets.
#include <utility>

#include "imports/parser.h"

namespace cohabit::python {

const Expr* Parser::parse_atom() {
  const uint32_t line = token_.line;
  const auto constant = [&](ExprKind kind) {
    Expr* expr = node(kind, line);
    expr->text = text(token_);
    advance();
    return expr;
  };
  switch (token_.kind) {
    case TokenKind::kName:
      return constant(ExprKind::kName);
    case TokenKind::kInteger:
    case TokenKind::kNumber:
      return parse_number();
    case TokenKind::kString:
    case TokenKind::kFString:
      return parse_strings();
    case TokenKind::kNone:
      return constant(ExprKind::kNone);
    case TokenKind::kTrue:
      return constant(ExprKind::kTrue);
    case TokenKind::kFalse:
      return constant(ExprKind::kFalse);
    case TokenKind::kEllipsis:
      return constant(ExprKind::kEllipsis);
    case TokenKind::kParsed:
      token_ = following_;
      return parsed_;
    case TokenKind::kOpenParen:
      return parse_group();
    case TokenKind::kOpenBracket:
      return parse_list();
    case TokenKind::kOpenBrace:
      return parse_braces();
    default:
      fail("invalid syntax");
      return node(ExprKind::kNone, line);
  }
}

std::string_view Parser::take_name(std::string_view what) {
  const std::string_view name = text(token_);
  expect(TokenKind::kName, what);
  return name;
}

const Expr* Parser::parse_number() {
  Expr* expr = node(ExprKind::kNumber, token_.line);
  expr->text = text(token_);
  if (at(TokenKind::kInteger)) {
    expr->kind = ExprKind::kInteger;
    expr->integer = integer_value(expr->text).value_or(0);
  }
  advance();
  return expr;
}

// ( ... ): a tuple, a generator, or an expression whose parentheses leave no trace.
const Expr* Parser::parse_group() {
  const uint32_t line = token_.line;
  advance();
  if (accept(TokenKind::kCloseParen)) return node(ExprKind::kTuple, line);
  const bool is_yield = at(TokenKind::kYield);
  const Expr* first = is_yield ? parse_yield() : parse_star_expression(true);
  if (at_comprehension() && !is_yield) {
    first = parse_comprehension(ExprKind::kGenerator, line, {first});
  } else if (at(TokenKind::kComma) && !is_yield) {
    Exprs items(*this, exprs_);
    items.add(first);
    parse_more_items(items, TokenKind::kCloseParen);
    first = node(ExprKind::kTuple, line, items.take());
  } else if (first->kind == ExprKind::kStarred) {
    fail("cannot use starred expression here");
  }
  expect(TokenKind::kCloseParen, "')'");
  return first;
}

// , item, item... up to the bracket that closes.
void Parser::parse_more_items(Exprs& items, TokenKind close) {
  while (accept(TokenKind::kComma)) {
    if (at(close)) return;
    items.add(parse_star_expression(true));
  }
}

const Expr* Parser::parse_list() {
  const uint32_t line = token_.line;
  advance();
  if (accept(TokenKind::kCloseBracket)) return node(ExprKind::kList, line);
  const Expr* list = parse_star_expression(true);
  if (at_comprehension()) {
    list = parse_comprehension(ExprKind::kListComp, line, {list});
  } else {
    Exprs items(*this, exprs_);
    items.add(list);
    parse_more_items(items, TokenKind::kCloseBracket);
    list = node(ExprKind::kList, line, items.take());
  }
  expect(TokenKind::kCloseBracket, "']'");
  return list;
}

// { ... }: the first item tells a dictionary from a set.
const Expr* Parser::parse_braces() {
  const uint32_t line = token_.line;
  advance();
  if (accept(TokenKind::kCloseBrace)) return node(ExprKind::kDict, line);
  const Expr* result = nullptr;
  if (at(TokenKind::kDoubleStar)) {
    result = parse_dict(line, nullptr);
  } else {
    const uint32_t begin = token_.begin;
    const Expr* first = parse_star_expression(true);
    if (!is_plain(first, begin) && at(TokenKind::kColon)) fail("invalid key of a dictionary");
    if (at(TokenKind::kColon))
      result = parse_dict(line, first);
    else if (at_comprehension())
      result = parse_comprehension(ExprKind::kSetComp, line, {first});
    else
      result = parse_set(line, first);
  }
  expect(TokenKind::kCloseBrace, "'}'");
  return result;
}

const Expr* Parser::parse_set(uint32_t line, const Expr* first) {
  Exprs items(*this, exprs_);
  items.add(first);
  parse_more_items(items, TokenKind::kCloseBrace);
  return node(ExprKind::kSet, line, items.take());
}

// From the ":" behind the first key, or from the "**" that stands for one.
const Expr* Parser::parse_dict(uint32_t line, const Expr* first) {
  Exprs items(*this, exprs_);
  items.add(first);
  advance();
  items.add(first == nullptr ? parse_binary(1) : parse_expression());
  if (first != nullptr && at_comprehension())
    return parse_comprehension(ExprKind::kDictComp, line, {items[0], items[1]});
  while (accept(TokenKind::kComma) && !at(TokenKind::kCloseBrace)) {
    if (accept(TokenKind::kDoubleStar)) {
      items.add(nullptr);
      items.add(parse_binary(1));
      continue;
    }
    items.add(parse_expression());
    expect(TokenKind::kColon, "':' after a key");
    items.add(parse_expression());
  }
  return node(ExprKind::kDict, line, items.take());
}

const Expr* Parser::parse_comprehension(ExprKind kind, uint32_t line,
                                        std::initializer_list<const Expr*> elements) {
  Exprs items(*this, exprs_);
  for (const Expr* element : elements) {
    if (element->kind == ExprKind::kStarred)
      fail("iterable unpacking cannot be used in comprehension");
    items.add(element);
  }
  while (at_comprehension()) items.add(parse_for_clause());
  return node(kind, line, items.take());
}

const Expr* Parser::parse_for_clause() {
  const uint32_t line = token_.line;
  accept(TokenKind::kAsync);
  expect(TokenKind::kFor, "'for'");
  Exprs items(*this, exprs_);
  items.add(parse_target_list());
  expect(TokenKind::kIn, "'in'");
  items.add(parse_disjunction());
  while (accept(TokenKind::kIf)) items.add(parse_disjunction());
  return node(ExprKind::kFor, line, items.take());
}

// From the "(" to behind the ")". Arguments by position may not follow those by name.
void Parser::parse_arguments(Exprs& arguments, bool may_be_generator) {
  const uint32_t line = token_.line;
  const size_t callee = arguments.size();
  bool has_name = false, has_mapping = false;
  advance();
  while (!at(TokenKind::kCloseParen) && !failed_) {
    const Expr* argument = parse_argument();
    const bool is_name = argument->kind == ExprKind::kKeyword;
    if (argument->kind == ExprKind::kStarred ? has_mapping : has_name && !is_name)
      fail("positional argument follows keyword argument");
    has_name = has_name || is_name;
    has_mapping = has_mapping || (is_name && argument->text.empty());
    if (at_comprehension()) {
      if (arguments.size() != callee || !may_be_generator || is_name)
        fail("generator expression must be parenthesized");
      arguments.add(parse_comprehension(ExprKind::kGenerator, line, {argument}));
      break;
    }
    arguments.add(argument);
    if (!accept(TokenKind::kComma)) break;
  }
  expect(TokenKind::kCloseParen, "')'");
}

const Expr* Parser::parse_argument() {
  const uint32_t begin = token_.begin, line = token_.line;
  if (accept(TokenKind::kDoubleStar)) return node(ExprKind::kKeyword, line, {parse_expression()});
  if (accept(TokenKind::kStar)) return node(ExprKind::kStarred, line, {parse_expression()});
  const Expr* expr = parse_named_expression();
  if (!at(TokenKind::kAssign)) return expr;
  if (!is_bare_name(expr, begin)) fail("expression cannot contain assignment");
  advance();
  Expr* keyword = node(ExprKind::kKeyword, line, {parse_expression()});
  keyword->text = expr->text;
  return keyword;
}

// What stands between "for" and "in".
const Expr* Parser::parse_target_list() {
  const uint32_t line = token_.line;
  const Expr* first = parse_star_target();
  if (!at(TokenKind::kComma)) return first;
  Exprs items(*this, exprs_);
  items.add(first);
  while (accept(TokenKind::kComma)) {
    if (!at_expression()) break;
    items.add(parse_star_target());
  }
  return node(ExprKind::kTuple, line, items.take());
}

const Expr* Parser::parse_star_target() {
  const Level level(*this);
  const uint32_t line = token_.line;
  const bool starred = accept(TokenKind::kStar);
  const Expr* target = parse_primary();
  if (starred) target = node(ExprKind::kStarred, line, {target});
  check_target(target, "assign to");
  return target;
}

void Parser::check_target(const Expr* target, std::string_view action) {
  switch (target->kind) {
    case ExprKind::kName:
    case ExprKind::kAttribute:
    case ExprKind::kSubscript:
      return;
    case ExprKind::kStarred:
      if (action == "delete" || target->items[0]->kind == ExprKind::kStarred) break;
      check_target(target->items[0], action);
      return;
    case ExprKind::kTuple:
    case ExprKind::kList:
      for (const Expr* item : target->items) check_target(item, action);
      return;
    default:
      break;
  }
  fail("cannot " + std::string(action) + " expression");
}

}  // namespace cohabit::python
