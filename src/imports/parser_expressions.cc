// Expressions from the loosest binding (a conditional, a lambda) to the tightest (calls).
#include <array>

#include "imports/parser.h"

namespace cohabit::python {
namespace {

// How tight a binary operator binds; 0: it is none of those between comparison and "**".
int precedence_of(Operator op) {
  switch (op) {
    case Operator::kBitOr:
      return 1;
    case Operator::kBitXor:
      return 2;
    case Operator::kBitAnd:
      return 3;
    case Operator::kLeftShift:
    case Operator::kRightShift:
      return 4;
    case Operator::kAdd:
    case Operator::kSubtract:
      return 5;
    case Operator::kMultiply:
    case Operator::kDivide:
    case Operator::kFloorDivide:
    case Operator::kModulo:
    case Operator::kMatMultiply:
      return 6;
    default:
      return 0;
  }
}

}  // namespace

// What is no expression for a tuple, but may stand between commas.
const Expr* Parser::parse_star_expression(bool named) {
  const Level level(*this);
  if (!at(TokenKind::kStar)) return named ? parse_named_expression() : parse_expression();
  const uint32_t line = token_.line;
  advance();
  return node(ExprKind::kStarred, line, {parse_binary(1)});
}

// star_expressions: one expression, or a tuple without parentheses.
const Expr* Parser::parse_star_expressions() {
  const uint32_t line = token_.line;
  const Expr* first = parse_star_expression(false);
  if (!at(TokenKind::kComma)) return first;
  Exprs items(*this, exprs_);
  items.add(first);
  while (accept(TokenKind::kComma)) {
    if (!at_expression()) break;
    items.add(parse_star_expression(false));
  }
  return node(ExprKind::kTuple, line, items.take());
}

// Whether the token can start an expression: behind a comma, where a tuple may end.
bool Parser::at_expression() const {
  switch (token_.kind) {
    case TokenKind::kName:
    case TokenKind::kInteger:
    case TokenKind::kNumber:
    case TokenKind::kString:
    case TokenKind::kFString:
    case TokenKind::kOpenParen:
    case TokenKind::kOpenBracket:
    case TokenKind::kOpenBrace:
    case TokenKind::kEllipsis:
    case TokenKind::kStar:
    case TokenKind::kMinus:
    case TokenKind::kPlus:
    case TokenKind::kTilde:
    case TokenKind::kFalse:
    case TokenKind::kNone:
    case TokenKind::kTrue:
    case TokenKind::kAwait:
    case TokenKind::kLambda:
    case TokenKind::kNot:
      return true;
    default:
      return false;
  }
}

const Expr* Parser::parse_yield_or_star_expressions() {
  return at(TokenKind::kYield) ? parse_yield() : parse_star_expressions();
}

const Expr* Parser::parse_yield() {
  const uint32_t line = token_.line;
  advance();
  if (accept(TokenKind::kFrom)) return node(ExprKind::kYieldFrom, line, {parse_expression()});
  const Expr* value = at_expression() ? parse_star_expressions() : nullptr;
  return node(ExprKind::kYield, line, {value});
}

// A name that stands there without parentheses: what ":=" and keyword arguments may follow.
bool Parser::is_bare_name(const Expr* expr, uint32_t begin) const {
  return expr->kind == ExprKind::kName && expr->text.data() == text_.data() + begin;
}

// Neither "*x" nor "x := y" without parentheses.
bool Parser::is_plain(const Expr* expr, uint32_t begin) const {
  return expr->kind != ExprKind::kStarred &&
         (expr->kind != ExprKind::kNamed || !is_bare_name(expr->items[0], begin));
}

const Expr* Parser::parse_named_expression() {
  const uint32_t begin = token_.begin, line = token_.line;
  const Expr* expr = parse_expression();
  if (!at(TokenKind::kWalrus)) return expr;
  if (!is_bare_name(expr, begin)) fail("cannot use assignment expressions with that target");
  advance();
  return node(ExprKind::kNamed, line, {expr, parse_expression()});
}

const Expr* Parser::parse_expression() {
  const Level level(*this);
  if (at(TokenKind::kLambda)) return parse_lambda();
  const uint32_t line = token_.line;
  const Expr* then = parse_disjunction();
  if (!accept(TokenKind::kIf)) return then;
  const Expr* condition = parse_disjunction();
  expect(TokenKind::kElse, "'else' after 'if' expression");
  return node(ExprKind::kConditional, line, {then, condition, parse_expression()});
}

const Expr* Parser::parse_disjunction() {
  const uint32_t line = token_.line;
  const Expr* first = parse_conjunction();
  if (!at(TokenKind::kOr)) return first;
  Exprs items(*this, exprs_);
  items.add(first);
  while (accept(TokenKind::kOr)) items.add(parse_conjunction());
  Expr* expr = node(ExprKind::kBool, line, items.take());
  expr->op = Operator::kOr;
  return expr;
}

const Expr* Parser::parse_conjunction() {
  const uint32_t line = token_.line;
  const Expr* first = parse_inversion();
  if (!at(TokenKind::kAnd)) return first;
  Exprs items(*this, exprs_);
  items.add(first);
  while (accept(TokenKind::kAnd)) items.add(parse_inversion());
  Expr* expr = node(ExprKind::kBool, line, items.take());
  expr->op = Operator::kAnd;
  return expr;
}

const Expr* Parser::parse_inversion() {
  if (!at(TokenKind::kNot)) return parse_comparison();
  const Level level(*this);
  const uint32_t line = token_.line;
  advance();
  Expr* expr = node(ExprKind::kUnary, line, {parse_inversion()});
  expr->op = Operator::kNot;
  return expr;
}

// Takes a comparison operator, which may be two words.
Operator Parser::take_comparison() {
  const Operator op = token_.op;
  if (at(TokenKind::kNot)) {
    advance();
    expect(TokenKind::kIn, "'in' after 'not'");
    return Operator::kNotIn;
  }
  if (op < Operator::kEqual || op > Operator::kNotIn) return Operator::kNoOperator;
  advance();
  return op == Operator::kIs && accept(TokenKind::kNot) ? Operator::kIsNot : op;
}

const Expr* Parser::parse_comparison() {
  const uint32_t line = token_.line;
  const Expr* first = parse_binary(1);
  Operator op = take_comparison();
  if (op == Operator::kNoOperator) return first;
  Exprs items(*this, exprs_);
  Gather<Operator> operators(*this, operators_);
  items.add(first);
  for (; op != Operator::kNoOperator; op = take_comparison()) {
    operators.add(op);
    items.add(parse_binary(1));
  }
  Expr* expr = node(ExprKind::kCompare, line, items.take());
  expr->operators = operators.take();
  return expr;
}

// Operators that bind at least so tight.
const Expr* Parser::parse_binary(int precedence) {
  const uint32_t line = token_.line;
  const Expr* left = parse_unary();
  for (int here = precedence_of(token_.op); here >= precedence; here = precedence_of(token_.op)) {
    const Operator op = token_.op;
    advance();
    Expr* expr = node(ExprKind::kBinary, line, {left, parse_binary(here + 1)});
    expr->op = op;
    left = expr;
  }
  return left;
}

const Expr* Parser::parse_unary() {
  Operator op = Operator::kNoOperator;
  if (at(TokenKind::kMinus)) op = Operator::kMinus;
  if (at(TokenKind::kPlus)) op = Operator::kPlus;
  if (at(TokenKind::kTilde)) op = Operator::kInvert;
  if (op == Operator::kNoOperator) return parse_power();
  const Level level(*this);
  const uint32_t line = token_.line;
  advance();
  Expr* expr = node(ExprKind::kUnary, line, {parse_unary()});
  expr->op = op;
  return expr;
}

const Expr* Parser::parse_power() {
  const uint32_t line = token_.line;
  const Expr* base = parse_primary();
  if (!at(TokenKind::kDoubleStar)) return base;
  const Level level(*this);
  advance();
  Expr* expr = node(ExprKind::kBinary, line, {base, parse_unary()});
  expr->op = Operator::kPower;
  return expr;
}

const Expr* Parser::parse_primary() {
  const uint32_t line = token_.line;
  if (!at(TokenKind::kAwait)) return parse_trailers(parse_atom(), line);
  advance();
  const Expr* atom = parse_atom();
  return node(ExprKind::kAwait, line, {parse_trailers(atom, atom->line)});
}

// Attributes, calls and subscripts; line is that of the first token, be it a parenthesis.
const Expr* Parser::parse_trailers(const Expr* expr, uint32_t line) {
  for (;;) {
    if (accept(TokenKind::kDot)) {
      const std::string_view name = take_name("a name after '.'");
      Expr* attribute = node(ExprKind::kAttribute, line, {expr});
      attribute->text = name;
      expr = attribute;
    } else if (at(TokenKind::kOpenParen)) {
      Exprs items(*this, exprs_);
      items.add(expr);
      parse_arguments(items, true);
      expr = node(ExprKind::kCall, line, items.take());
    } else if (accept(TokenKind::kOpenBracket)) {
      expr = node(ExprKind::kSubscript, line, {expr, parse_subscript()});
      expect(TokenKind::kCloseBracket, "']'");
    } else {
      return expr;
    }
  }
}

const Expr* Parser::parse_subscript() {
  const uint32_t line = token_.line;
  const bool starred = at(TokenKind::kStar);
  if (starred) note_newer(11, line);
  const Expr* first = parse_slice();
  if (!at(TokenKind::kComma) && !starred) return first;
  Exprs items(*this, exprs_);
  items.add(first);
  while (accept(TokenKind::kComma)) {
    if (at(TokenKind::kCloseBracket)) break;
    items.add(parse_slice());
  }
  return node(ExprKind::kTuple, line, items.take());
}

const Expr* Parser::parse_slice() {
  const uint32_t line = token_.line;
  const uint32_t begin = token_.begin;
  const Expr* start = at(TokenKind::kColon) ? nullptr : parse_star_expression(true);
  if (start != nullptr && !at(TokenKind::kColon)) return start;
  if (start != nullptr && !is_plain(start, begin)) fail("invalid slice");
  advance();
  const Expr* stop = at_expression() ? parse_expression() : nullptr;
  const Expr* step = accept(TokenKind::kColon) && at_expression() ? parse_expression() : nullptr;
  return node(ExprKind::kSlice, line, {start, stop, step});
}

const Expr* Parser::parse_lambda() {
  // The colon of a lambda would start the format of a field.
  if (lexer_.in_field_itself()) fail("f-string: lambda expressions need parentheses");
  const uint32_t line = token_.line;
  advance();
  const std::span<const Parameter> parameters = parse_parameters(TokenKind::kColon);
  expect(TokenKind::kColon, "':'");
  Expr* expr = node(ExprKind::kLambda, line, {parse_expression()});
  expr->parameters = parameters;
  return expr;
}

}  // namespace cohabit::python
