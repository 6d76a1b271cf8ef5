// Functions and classes, with their decorators and parameters. Type parameters must be read, but
// nothing of them is kept.
#include "imports/parser.h"

namespace cohabit::python {

namespace {

bool is_dotted(const Expr& expr) {
  return expr.kind == ExprKind::kName ||
         (expr.kind == ExprKind::kAttribute && is_dotted(*expr.items[0]));
}

}  // namespace

const Stmt* Parser::parse_decorated() {
  Exprs decorators(*this, exprs_);
  while (accept(TokenKind::kAt)) {
    const Expr* decorator = parse_named_expression();
    if (!is_dotted(decorator->kind == ExprKind::kCall ? *decorator->items[0] : *decorator))
      note_newer(9, decorator->line);
    decorators.add(decorator);
    expect(TokenKind::kNewline, "the end of the line");
  }
  return parse_definition(decorators.take());
}

// Behind "async" may also come a loop or a with.
const Stmt* Parser::parse_async() {
  Lexer ahead = lexer_;
  const TokenKind following = ahead.next().kind;
  if (following == TokenKind::kDef) return parse_definition({});
  const uint32_t line = token_.line;
  advance();
  const Stmt* statement = nullptr;
  if (at(TokenKind::kFor)) statement = parse_for(true);
  if (at(TokenKind::kWith) && statement == nullptr) statement = parse_with(true);
  if (statement == nullptr) {
    fail("invalid syntax");
    statement = statement_node(StmtKind::kPass, line);
  }
  return statement;
}

// The line is that of its keyword, not of the first decorator; CPython counts like this.
const Stmt* Parser::parse_definition(std::span<const Expr* const> decorators) {
  const uint32_t line = token_.line;
  const bool is_async = accept(TokenKind::kAsync);
  Stmt* statement = nullptr;
  if (at(TokenKind::kDef))
    statement = parse_function();
  else if (at(TokenKind::kClass) && !is_async)
    statement = parse_class();
  if (statement == nullptr) {
    fail("expected a function or a class");
    statement = statement_node(StmtKind::kPass, line);
  }
  statement->line = line;
  statement->is_async = is_async;
  statement->decorators = decorators;
  return statement;
}

Stmt* Parser::parse_function() {
  Stmt* statement = statement_node(StmtKind::kFunction, token_.line);
  advance();
  statement->name = take_name("a name");
  parse_type_parameters();
  expect(TokenKind::kOpenParen, "'('");
  statement->parameters = parse_parameters(TokenKind::kCloseParen);
  expect(TokenKind::kCloseParen, "')'");
  if (accept(TokenKind::kArrow)) statement->exprs = keep({parse_expression()});
  if (!at(TokenKind::kColon)) fail("expected ':'");
  if (failed_) return statement;
  statement->lazy = syntax_.nodes_.make<LazyBody>();
  if (!lexer_.skip_suite(*statement->lazy)) fail("expected an indented block");
  advance();
  return statement;
}

Stmt* Parser::parse_class() {
  Stmt* statement = statement_node(StmtKind::kClass, token_.line);
  advance();
  statement->name = take_name("a name");
  const bool is_generic = at(TokenKind::kOpenBracket);
  parse_type_parameters();
  Exprs bases(*this, exprs_);
  if (at(TokenKind::kOpenParen)) parse_arguments(bases, false);
  // Such a class derives from typing.Generic besides, whatever has that name here.
  if (is_generic) bases.add(node(ExprKind::kEllipsis, statement->line));
  statement->exprs = bases.take();
  statement->body = parse_suite("':'");
  return statement;
}

// [T, U: bound = default, *Ts, **P]
void Parser::parse_type_parameters() {
  if (!at(TokenKind::kOpenBracket)) return;
  note_newer(12, token_.line);
  advance();
  do {
    if (at(TokenKind::kCloseBracket)) break;
    parse_type_parameter();
  } while (accept(TokenKind::kComma));
  expect(TokenKind::kCloseBracket, "']'");
}

void Parser::parse_type_parameter() {
  const bool has_stars = accept(TokenKind::kStar);
  const bool is_plain = !has_stars && !accept(TokenKind::kDoubleStar);
  take_name("a type parameter");
  if (is_plain && accept(TokenKind::kColon)) parse_expression();
  if (accept(TokenKind::kAssign)) parse_star_expression(false);
}

// Those of a def up to ")", with annotations, or of a lambda up to ":".
std::span<const Parameter> Parser::parse_parameters(TokenKind end) {
  Gather<Parameter> parameters(*this, parameters_);
  Parameter::Kind kind = Parameter::kPositional;
  bool has_slash = false, has_default = false, needs_name = false;
  while (!at(end) && !failed_) {
    if (kind == Parameter::kVarKeywords) fail("arguments cannot follow var-keyword argument");
    if (accept(TokenKind::kSlash)) {
      if (has_slash || parameters.size() == 0 || kind != Parameter::kPositional)
        fail("/ must be preceded by positional arguments");
      has_slash = true;
    } else if (at(TokenKind::kStar)) {
      if (kind == Parameter::kKeywordOnly) fail("* argument may appear only once");
      advance();
      kind = Parameter::kKeywordOnly;
      needs_name = at(TokenKind::kComma);
      if (!needs_name) parameters.add(parse_parameter(end, Parameter::kVarArgs));
    } else {
      if (accept(TokenKind::kDoubleStar)) {
        if (needs_name) fail("named arguments must follow bare *");
        kind = Parameter::kVarKeywords;
      }
      needs_name = false;
      parameters.add(parse_parameter(end, kind));
      const bool here = parameters.back().initial != nullptr;
      if (kind == Parameter::kPositional && has_default && !here)
        fail("parameter without a default follows parameter with a default");
      has_default = has_default || here;
    }
    if (!accept(TokenKind::kComma)) break;
  }
  if (needs_name) fail("named arguments must follow bare *");
  return parameters.take();
}

Parameter Parser::parse_parameter(TokenKind end, Parameter::Kind kind) {
  Parameter parameter;
  parameter.kind = kind;
  parameter.name = take_name("a parameter");
  const bool has_initial = kind == Parameter::kPositional || kind == Parameter::kKeywordOnly;
  if (end == TokenKind::kCloseParen && accept(TokenKind::kColon)) {
    if (at(TokenKind::kStar)) note_newer(11, token_.line);
    parameter.annotation =
        kind == Parameter::kVarArgs ? parse_star_expression(false) : parse_expression();
  }
  if (has_initial && accept(TokenKind::kAssign)) parameter.initial = parse_expression();
  return parameter;
}

}  // namespace cohabit::python
