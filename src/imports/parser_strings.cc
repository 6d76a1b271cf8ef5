// String literals: adjacent ones are joined, and the fields of f-strings are parsed in place.
//
// The lexer does not see an f-string as a token. As of Python 3.12 a field may hold any expression,
// with the same quotes and again f-strings in it, so where the literal ends is known only after its
// fields were parsed. What was valid before 3.12 means the same when read like this.
#include "base/utf8.h"
#include "imports/parser.h"

namespace cohabit::python {
namespace {

// "{{" in an f-string is one brace. A \N{...} in it keeps its single ones.
std::string without_doubled_braces(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); i++) {
    result += text[i];
    if ((text[i] == '{' || text[i] == '}') && i + 1 < text.size() && text[i + 1] == text[i]) i++;
  }
  return result;
}

// Up to Python 3.11 the whole was one string, so no field could have its quotes, nor a backslash.
bool needs_own_tokens(std::string_view field, const FStringQuote& quote) {
  const std::string closing(quote.triple ? 3 : 1, quote.quote);
  return field.find(closing) != field.npos || field.find('\\') != field.npos ||
         (!quote.triple && field.find('\n') != field.npos);
}

}  // namespace

struct Parser::StringParts {
  Exprs& items;
  std::string* text = nullptr;  // literal text up to here; null: none since the last field
  uint32_t line = 0;
  bool is_formatted = false;
  bool is_bytes = false;
};

const Expr* Parser::parse_strings() {
  const Token first = token_;
  if (at(TokenKind::kString)) {
    advance();
    if (!at(TokenKind::kString) && !at(TokenKind::kFString)) return parse_plain_string(first);
  }
  return parse_joined_strings(first);
}

// A literal on its own is a view of the text if nothing in it is escaped.
const Expr* Parser::parse_plain_string(const Token& token) {
  const std::string_view literal = text(token);
  check_encoding(literal);
  const StringPrefix prefix = read_prefix(literal.substr(0, literal.find_first_of("'\"")));
  const std::string_view quoted = strip_quotes(literal, prefix);
  Expr* expr = node(prefix.is_bytes ? ExprKind::kBytes : ExprKind::kString, token.line);
  expr->text = quoted;
  const bool escaped = !prefix.is_raw && quoted.find('\\') != quoted.npos;
  if (!escaped && !prefix.is_bytes) return expr;
  std::string value;
  const std::string_view problem = append_value(value, quoted, prefix);
  if (!problem.empty()) fail(std::string(problem));
  if (escaped) expr->text = syntax_.strings_.emplace_back(std::move(value));
  return expr;
}

// The first literal is the token before the current one, unless it is an f-string.
const Expr* Parser::parse_joined_strings(const Token& first) {
  Exprs items(*this, exprs_);
  StringParts parts{.items = items, .line = first.line};
  bool is_first = true;
  for (Token token = first;
       !failed_ && (is_first || at(TokenKind::kString) || at(TokenKind::kFString));
       is_first = false) {
    if (!is_first || first.kind == TokenKind::kFString) token = token_;
    if (token.kind == TokenKind::kFString) {
      parse_formatted(parts);
      continue;
    }
    if (!is_first) advance();
    const std::string_view literal = text(token);
    const StringPrefix prefix = read_prefix(literal.substr(0, literal.find_first_of("'\"")));
    if (!is_first && prefix.is_bytes != parts.is_bytes)
      fail("cannot mix bytes and nonbytes literals");
    parts.is_bytes = prefix.is_bytes;
    append_text(parts, strip_quotes(literal, prefix), prefix);
  }
  if (parts.is_formatted && parts.is_bytes) fail("cannot mix bytes and nonbytes literals");
  if (parts.is_formatted) {
    end_text(parts);
    return node(ExprKind::kJoined, first.line, items.take());
  }
  Expr* expr = node(parts.is_bytes ? ExprKind::kBytes : ExprKind::kString, first.line);
  if (parts.text != nullptr) expr->text = *parts.text;
  return expr;
}

// Comments alone may hold bytes that are no text.
void Parser::check_encoding(std::string_view literal) {
  if (syntax_.stray_.line > 0 && !is_utf8(literal))
    fail("(unicode error) 'utf-8' codec can't decode a byte of a string");
}

void Parser::append_text(StringParts& parts, std::string_view literal, const StringPrefix& prefix) {
  if (literal.empty()) return;
  check_encoding(literal);
  if (parts.text == nullptr) parts.text = &syntax_.strings_.emplace_back();
  const std::string_view problem = append_value(*parts.text, literal, prefix);
  if (!problem.empty()) fail(std::string(problem));
}

void Parser::end_text(StringParts& parts) {
  if (parts.text == nullptr || parts.text->empty()) return;
  Expr* expr = node(ExprKind::kString, parts.line);
  expr->text = *parts.text;
  parts.items.add(expr);
  parts.text = nullptr;
}

// From the opening quote that is the current token to the token behind the closing one.
void Parser::parse_formatted(StringParts& parts) {
  const std::string_view opening = text(token_);
  const size_t letters = opening.find_first_of("'\"");
  const StringPrefix prefix = read_prefix(opening.substr(0, letters));
  const FStringQuote quote{
      .quote = opening.back(), .triple = opening.size() - letters == 3, .raw = prefix.is_raw};
  const size_t quote_size = quote.triple ? 3 : 1;
  parts.is_formatted = true;
  const Level level(*this);
  while (!failed_) {
    const uint32_t begin = lexer_.position();
    const Lexer::Piece piece = lexer_.next_piece(quote);
    if (piece == Lexer::Piece::kBroken) {
      fail("f-string: unterminated, or a single '}'");
      return;
    }
    const size_t behind = piece == Lexer::Piece::kField ? 1 : quote_size;
    const std::string_view literal = text_.substr(begin, lexer_.position() - begin - behind);
    append_text(parts, without_doubled_braces(literal), prefix);
    if (piece == Lexer::Piece::kClosed) break;
    const Expr* field = parse_field(parts, quote);
    end_text(parts);
    parts.items.add(field);
  }
  advance();
}

// From behind the { to behind the }, which is not a token: literal text follows.
const Expr* Parser::parse_field(StringParts& parts, const FStringQuote& quote) {
  const Level level(*this);
  if (lexer_.is_full()) fail("too deeply nested");
  const uint32_t begin = lexer_.position();
  const size_t outer = lexer_.enter_field();
  advance();
  const uint32_t line = token_.line;
  Exprs items(*this, exprs_);
  items.add(parse_yield_or_star_expressions());
  const bool is_debug = accept(TokenKind::kAssign);
  if (is_debug) append_text(parts, text_.substr(begin, token_.begin - begin), {.is_raw = true});
  const uint32_t tail = token_.begin;
  uint32_t end = tail;
  if (!failed_ && needs_own_tokens(text_.substr(begin, tail - begin), quote))
    note_newer(12, quote.triple ? line : parts.line);
  if (accept(TokenKind::kExclamation)) {
    end = token_.end;
    const std::string_view conversion = take_name("a conversion behind '!'");
    if (conversion != "r" && conversion != "s" && conversion != "a")
      fail("f-string: invalid conversion character");
  }
  if (at(TokenKind::kColon)) {
    parse_format(items, quote);
    end = lexer_.position() - 1;
  } else if (!at(TokenKind::kCloseBrace)) {
    fail("f-string: expecting '}'");
  }
  lexer_.leave_field(outer);
  Expr* field = node(ExprKind::kFormatted, line, items.take());
  if (!failed_) field->text = text_.substr(tail, end - tail);
  if (is_debug && field->text.empty()) field->text = "!r";
  return field;
}

// From the colon to behind the }. Its text stays as it is; only fields in it count.
void Parser::parse_format(Exprs& fields, FStringQuote quote) {
  quote.in_format = true;
  while (!failed_) {
    const Lexer::Piece piece = lexer_.next_piece(quote);
    if (piece == Lexer::Piece::kFormatEnd) break;
    if (piece == Lexer::Piece::kBroken) {
      fail("f-string: expecting '}'");
      return;
    }
    StringParts ignored{.items = fields};
    fields.add(parse_field(ignored, quote));
  }
  lexer_.close_field_format();
}

}  // namespace cohabit::python
