// match, and the patterns of its cases: expressions of the same shape stand for them (syntax.h).
#include "imports/parser.h"

namespace cohabit::python {

// "match" is a keyword where the line ends with a colon: no other statement starts with a name and
// does so.
bool Parser::at_match() const {
  return at_name("match") && lexer_.line_ends_with_colon();
}

const Stmt* Parser::parse_match() {
  Stmt* statement = statement_node(StmtKind::kMatch, token_.line);
  note_newer(10, token_.line);
  advance();
  const uint32_t line = token_.line;
  const Expr* subject = parse_star_expression(true);
  if (at(TokenKind::kComma)) {
    Exprs items(*this, exprs_);
    items.add(subject);
    parse_more_items(items, TokenKind::kColon);
    subject = node(ExprKind::kTuple, line, items.take());
  } else if (subject->kind == ExprKind::kStarred) {
    fail("cannot use starred expression here");
  }
  statement->exprs = keep({subject});
  expect(TokenKind::kColon, "':'");
  expect(TokenKind::kNewline, "the end of the line");
  expect(TokenKind::kIndent, "an indented block");
  Gather<Case> cases(*this, cases_);
  while (!at(TokenKind::kDedent) && !failed_) cases.add(parse_case());
  advance();
  statement->cases = cases.take();
  return statement;
}

Case Parser::parse_case() {
  Case result{};
  if (!at_name("case")) fail("expected 'case'");
  advance();
  result.pattern = parse_patterns();
  if (accept(TokenKind::kIf)) result.guard = parse_named_expression();
  result.body = parse_suite("':'");
  return result;
}

// One pattern, or a sequence without brackets.
const Expr* Parser::parse_patterns() {
  const uint32_t line = token_.line;
  const Expr* first = parse_star_pattern();
  if (!at(TokenKind::kComma)) {
    if (first->kind == ExprKind::kStarred) fail("invalid pattern");
    return first;
  }
  Exprs items(*this, exprs_);
  items.add(first);
  while (accept(TokenKind::kComma)) {
    if (at(TokenKind::kColon) || at(TokenKind::kIf)) break;
    items.add(parse_star_pattern());
  }
  return node(ExprKind::kTuple, line, items.take());
}

const Expr* Parser::parse_star_pattern() {
  const uint32_t line = token_.line;
  if (!accept(TokenKind::kStar)) return parse_pattern();
  return node(ExprKind::kStarred, line, {parse_capture()});
}

const Expr* Parser::parse_capture() {
  Expr* name = node(ExprKind::kName, token_.line);
  name->text = take_name("a name");
  return name;
}

const Expr* Parser::parse_pattern() {
  const Level level(*this);
  const uint32_t line = token_.line;
  const Expr* pattern = parse_or_pattern();
  if (!accept(TokenKind::kAs)) return pattern;
  if (at_name("_")) fail("cannot use '_' as a target");
  return node(ExprKind::kNamed, line, {pattern, parse_capture()});
}

const Expr* Parser::parse_or_pattern() {
  const uint32_t line = token_.line;
  const Expr* left = parse_closed_pattern();
  while (accept(TokenKind::kBar)) {
    Expr* either = node(ExprKind::kBinary, line, {left, parse_closed_pattern()});
    either->op = Operator::kBitOr;
    left = either;
  }
  return left;
}

const Expr* Parser::parse_closed_pattern() {
  switch (token_.kind) {
    case TokenKind::kName:
      return parse_name_pattern();
    case TokenKind::kMinus:
    case TokenKind::kInteger:
    case TokenKind::kNumber:
      return parse_number_pattern();
    case TokenKind::kString:
      return parse_strings();
    case TokenKind::kNone:
    case TokenKind::kTrue:
    case TokenKind::kFalse:
      return parse_atom();
    case TokenKind::kOpenParen:
      return parse_sequence_pattern(TokenKind::kCloseParen);
    case TokenKind::kOpenBracket:
      return parse_sequence_pattern(TokenKind::kCloseBracket);
    case TokenKind::kOpenBrace:
      return parse_mapping_pattern();
    default:
      fail("invalid pattern");
      return node(ExprKind::kNone, token_.line);
  }
}

const Expr* Parser::parse_signed_number() {
  const uint32_t line = token_.line;
  const bool is_negative = accept(TokenKind::kMinus);
  if (!at(TokenKind::kInteger) && !at(TokenKind::kNumber)) fail("expected a number");
  const Expr* number = parse_number();
  if (!is_negative) return number;
  Expr* negative = node(ExprKind::kUnary, line, {number});
  negative->op = Operator::kMinus;
  return negative;
}

// A complex one is written as the sum of its parts.
const Expr* Parser::parse_number_pattern() {
  const uint32_t line = token_.line;
  const Expr* real = parse_signed_number();
  if (!at(TokenKind::kPlus) && !at(TokenKind::kMinus)) return real;
  const Operator op = token_.op;
  advance();
  if (!at(TokenKind::kNumber)) fail("imaginary number required in complex literal");
  Expr* sum = node(ExprKind::kBinary, line, {real, parse_number()});
  sum->op = op;
  return sum;
}

// A name is a capture, one with dots a value, one with parentheses a class.
const Expr* Parser::parse_name_pattern() {
  const uint32_t line = token_.line;
  const Expr* name = parse_capture();
  while (accept(TokenKind::kDot)) {
    const std::string_view attribute = take_name("a name after '.'");
    Expr* dotted = node(ExprKind::kAttribute, line, {name});
    dotted->text = attribute;
    name = dotted;
  }
  return at(TokenKind::kOpenParen) ? parse_class_pattern(name) : name;
}

const Expr* Parser::parse_class_pattern(const Expr* callee) {
  Exprs items(*this, exprs_);
  items.add(callee);
  advance();
  bool has_keyword = false;
  while (!at(TokenKind::kCloseParen) && !failed_) {
    const uint32_t begin = token_.begin, line = token_.line;
    const Expr* pattern = parse_pattern();
    if (at(TokenKind::kAssign)) {
      if (!is_bare_name(pattern, begin)) fail("invalid pattern");
      advance();
      Expr* keyword = node(ExprKind::kKeyword, line, {parse_pattern()});
      keyword->text = pattern->text;
      pattern = keyword;
      has_keyword = true;
    } else if (has_keyword) {
      fail("positional patterns follow keyword patterns");
    }
    items.add(pattern);
    if (!accept(TokenKind::kComma)) break;
  }
  expect(TokenKind::kCloseParen, "')'");
  return node(ExprKind::kCall, callee->line, items.take());
}

// [...], or (...), which around one pattern without a comma only groups.
const Expr* Parser::parse_sequence_pattern(TokenKind close) {
  const uint32_t line = token_.line;
  const bool is_list = close == TokenKind::kCloseBracket;
  advance();
  Exprs items(*this, exprs_);
  bool has_comma = false;
  while (!at(close) && !failed_) {
    items.add(parse_star_pattern());
    if (!accept(TokenKind::kComma)) break;
    has_comma = true;
  }
  expect(close, is_list ? "']'" : "')'");
  if (!is_list && items.size() == 1 && !has_comma) {
    if (items[0]->kind == ExprKind::kStarred) fail("invalid pattern");
    return items[0];
  }
  return node(is_list ? ExprKind::kList : ExprKind::kTuple, line, items.take());
}

const Expr* Parser::parse_mapping_pattern() {
  const uint32_t line = token_.line;
  advance();
  Exprs items(*this, exprs_);
  while (!at(TokenKind::kCloseBrace) && !failed_) {
    if (accept(TokenKind::kDoubleStar)) {
      items.add(nullptr);
      items.add(parse_capture());
      accept(TokenKind::kComma);
      break;
    }
    items.add(parse_mapping_key());
    expect(TokenKind::kColon, "':' after a key");
    items.add(parse_pattern());
    if (!accept(TokenKind::kComma)) break;
  }
  expect(TokenKind::kCloseBrace, "'}'");
  return node(ExprKind::kDict, line, items.take());
}

// A literal or a name with dots.
const Expr* Parser::parse_mapping_key() {
  const Expr* key = parse_closed_pattern();
  switch (key->kind) {
    case ExprKind::kAttribute:
    case ExprKind::kInteger:
    case ExprKind::kNumber:
    case ExprKind::kUnary:
    case ExprKind::kBinary:
    case ExprKind::kString:
    case ExprKind::kBytes:
    case ExprKind::kNone:
    case ExprKind::kTrue:
    case ExprKind::kFalse:
      break;
    default:
      fail("invalid key in a mapping pattern");
  }
  return key;
}

}  // namespace cohabit::python
