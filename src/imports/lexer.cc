#include "imports/lexer.h"

#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "imports/words.h"

namespace cohabit::python {
namespace {

enum Trait : uint8_t { kStart = 1, kPart = 2, kDigit = 4, kHex = 8 };

constexpr std::array<uint8_t, 256> make_traits() {
  std::array<uint8_t, 256> traits{};
  for (int c = 0; c < 256; c++) {
    const bool digit = c >= '0' && c <= '9';
    const int lower = c | 0x20;
    const bool letter = (lower >= 'a' && lower <= 'z') || c == '_' || c >= 0x80;
    if (letter && c != '@' && c != '`') traits[c] |= kStart | kPart;
    if (digit) traits[c] |= kPart | kDigit | kHex;
    if (c < 0x80 && lower >= 'a' && lower <= 'f') traits[c] |= kHex;
  }
  return traits;
}

constexpr std::array<uint8_t, 256> kTraits = make_traits();

bool has(char c, Trait trait) {
  return (kTraits[static_cast<uint8_t>(c)] & trait) != 0;
}

bool is_decimal(char c) {
  return has(c, kDigit);
}
bool is_hexadecimal(char c) {
  return has(c, kHex);
}
bool is_octal(char c) {
  return c >= '0' && c <= '7';
}
bool is_binary(char c) {
  return c == '0' || c == '1';
}

}  // namespace

Lexer::Lexer(std::string_view text, const LazyBody& body, bool whole_lines)
    : cursor_{text.substr(0, body.end), body.begin, body.line},
      outer_indents_(body.level),
      at_line_start_(whole_lines) {
  if (!whole_lines || body.begin == 0) indents_.push_back({});
}

Token Lexer::make(TokenKind kind, uint32_t begin, Operator op) const {
  return {kind, op, Operator::kNoOperator, begin, cursor_.at, cursor_.line};
}

Token Lexer::fail(std::string message) {
  error_ = std::move(message);
  return make(TokenKind::kError, cursor_.at);
}

Token Lexer::next() {
  Token token;
  if (dedents_ > 0) {
    dedents_--;
    return make(TokenKind::kDedent, cursor_.at);
  }
  if (at_line_start_ && start_line(token)) return token;
  if (!skip_blanks()) return fail("unexpected character after line continuation character");
  if (cursor_.at_end()) return end_of_text();
  const char c = cursor_.peek();
  if (c == '\n') {
    token = make(TokenKind::kNewline, cursor_.at);
    cursor_.skip();
    at_line_start_ = true;
    line_has_token_ = false;
    return token;
  }
  line_has_token_ = true;
  if (has(c, kStart)) return read_name();
  if (has(c, kDigit) || (c == '.' && has(cursor_.peek(1), kDigit))) return read_number();
  if (c == '"' || c == '\'') return read_string(cursor_.at, {});
  return read_operator();
}

// True when the change of indentation is a token.
bool Lexer::start_line(Token& token) {
  for (;;) {
    const Indentation indentation = skip_indentation(cursor_);
    if (cursor_.peek() == '#') skip_comment(cursor_);
    if (cursor_.at_end()) return false;
    if (cursor_.peek() != '\n') {
      at_line_start_ = false;
      return change_indentation(indentation, token);
    }
    cursor_.skip();
  }
}

bool Lexer::change_indentation(Indentation indentation, Token& token) {
  if (indents_.empty()) indents_.push_back(indentation);
  const Indentation outer = indents_.back();
  if (indentation.column > outer.column) {
    if (outer_indents_ + indents_.size() >= kMaxIndents) {
      token = fail("too deeply nested");
      return true;
    }
    indents_.push_back(indentation);
    token = make(TokenKind::kIndent, cursor_.at);
    if (indentation.alternative <= outer.alternative)
      token = fail("inconsistent use of tabs and spaces in indentation");
    return true;
  }
  while (indents_.size() > 1 && indentation.column < indents_.back().column) {
    indents_.pop_back();
    dedents_++;
  }
  if (indentation.column != indents_.back().column) {
    token = fail("unindent does not match any outer indentation level");
    return true;
  }
  if (indentation.alternative != indents_.back().alternative) {
    token = fail("inconsistent use of tabs and spaces in indentation");
    return true;
  }
  if (dedents_ == 0) return false;
  dedents_--;
  token = make(TokenKind::kDedent, cursor_.at);
  return true;
}

// Inside of brackets line breaks and comments are blanks as well.
bool Lexer::skip_blanks() {
  for (;;) {
    const char c = cursor_.peek();
    if (c == ' ' || c == '\t' || c == '\f') {
      cursor_.at++;
    } else if (c == '#') {
      skip_comment(cursor_);
    } else if (c == '\n' && !brackets_.empty()) {
      cursor_.skip();
    } else if (c == '\\') {
      if (cursor_.peek(1) != '\n' || cursor_.at + size_t{2} >= cursor_.text.size()) return false;
      cursor_.at += 2;
      cursor_.line++;
    } else {
      return true;
    }
  }
}

Token Lexer::end_of_text() {
  if (!brackets_.empty()) return fail(std::string("'") + brackets_.back() + "' was never closed");
  if (line_has_token_) {
    line_has_token_ = false;
    at_line_start_ = true;
    return make(TokenKind::kNewline, cursor_.at);
  }
  if (indents_.size() <= 1) return make(TokenKind::kEnd, cursor_.at);
  indents_.pop_back();
  return make(TokenKind::kDedent, cursor_.at);
}

Token Lexer::read_name() {
  const uint32_t begin = cursor_.at;
  const std::string_view text = cursor_.text;
  bool ascii = true;
  size_t end = begin;
  for (; end < text.size() && has(text[end], kPart); end++)
    ascii = ascii && (text[end] & 0x80) == 0;
  cursor_.at = static_cast<uint32_t>(end);
  const std::string_view name = text.substr(begin, end - begin);
  const char following = cursor_.peek();
  if ((following == '"' || following == '\'') && name.size() <= 2) {
    const StringPrefix prefix = read_prefix(name);
    if (prefix.is_valid) return read_string(begin, prefix);
  }
  if (!ascii && (!is_utf8(name) || !is_identifier(name)))
    return fail("invalid character in identifier");
  if (const Keyword* keyword = find_keyword(name)) return make(keyword->kind, begin, keyword->op);
  return make(TokenKind::kName, begin);
}

Token Lexer::read_string(uint32_t begin, const StringPrefix& prefix) {
  Token token = make(prefix.is_formatted ? TokenKind::kFString : TokenKind::kString, begin);
  if (prefix.is_formatted) {
    const char quote = cursor_.peek();
    cursor_.at += cursor_.peek(1) == quote && cursor_.peek(2) == quote ? 3 : 1;
  } else if (!skip_string(cursor_)) {
    cursor_.line = token.line;
    return fail("unterminated string literal");
  }
  token.end = cursor_.at;
  return token;
}

// Digits with single underscores between them.
bool Lexer::read_digits(bool (*is_digit)(char)) {
  for (;;) {
    while (is_digit(cursor_.peek())) cursor_.at++;
    if (cursor_.peek() != '_') return true;
    if (!is_digit(cursor_.peek(1))) return false;
    cursor_.at++;
  }
}

Token Lexer::read_number() {
  const uint32_t begin = cursor_.at;
  const char second = static_cast<char>(cursor_.peek(1) | 0x20);
  if (cursor_.peek() == '0' && (second == 'x' || second == 'o' || second == 'b'))
    return read_based_number(begin);
  TokenKind kind = TokenKind::kInteger;
  if (!read_digits(is_decimal)) return fail("invalid decimal literal");
  const std::string_view digits = cursor_.text.substr(begin, cursor_.at - begin);
  if (cursor_.peek() == '.') {
    kind = TokenKind::kNumber;
    cursor_.at++;
    if (has(cursor_.peek(), kDigit) && !read_digits(is_decimal))
      return fail("invalid decimal literal");
  }
  if ((cursor_.peek() | 0x20) == 'e') {
    const uint32_t sign = cursor_.peek(1) == '+' || cursor_.peek(1) == '-' ? 1 : 0;
    if (has(cursor_.peek(1 + sign), kDigit)) {
      kind = TokenKind::kNumber;
      cursor_.at += 1 + sign;
      if (!read_digits(is_decimal)) return fail("invalid decimal literal");
    }
  }
  if ((cursor_.peek() | 0x20) == 'j') {
    kind = TokenKind::kNumber;
    cursor_.at++;
  }
  if (kind == TokenKind::kInteger && digits.starts_with('0') &&
      digits.find_first_not_of("0_") != digits.npos)
    return fail("leading zeros in decimal integer literals are not permitted");
  return end_number(begin, kind);
}

Token Lexer::read_based_number(uint32_t begin) {
  const char base = static_cast<char>(cursor_.peek(1) | 0x20);
  bool (*const is_digit)(char) = base == 'x' ? is_hexadecimal : base == 'o' ? is_octal : is_binary;
  cursor_.at += 2;
  if (cursor_.peek() == '_') cursor_.at++;
  if (!is_digit(cursor_.peek()) || !read_digits(is_digit) || has(cursor_.peek(), kDigit))
    return fail("invalid digit in number");
  return end_number(begin, TokenKind::kInteger);
}

// "1if x else 2" is deprecated, but good.
Token Lexer::end_number(uint32_t begin, TokenKind kind) {
  if (has(cursor_.peek(), kPart)) {
    const std::string_view rest = cursor_.text.substr(cursor_.at, 4);
    bool is_keyword = false;
    for (const std::string_view word : {"and", "else", "for", "if", "in", "is", "not", "or"})
      is_keyword = is_keyword || rest.starts_with(word);
    if (!is_keyword) return fail("invalid number literal");
  }
  return make(kind, begin);
}

Token Lexer::open_bracket(TokenKind kind) {
  if (brackets_.size() >= kMaxBrackets) return fail("too deeply nested");
  brackets_ += cursor_.peek();
  cursor_.at++;
  return make(kind, cursor_.at - 1);
}

Token Lexer::close_bracket(TokenKind kind, char opening) {
  if (brackets_.empty() || brackets_.back() != opening)
    return fail(std::string("unmatched '") + cursor_.peek() + "'");
  brackets_.pop_back();
  cursor_.at++;
  return make(kind, cursor_.at - 1);
}

// An operator of so many characters, which "=" behind it makes an augmented assignment.
Token Lexer::read_longer_operator(TokenKind kind, Operator op, uint32_t length) {
  const uint32_t begin = cursor_.at;
  cursor_.at += length;
  if (cursor_.peek() != '=') return make(kind, begin, op);
  cursor_.at++;
  Token token = make(TokenKind::kAugmented, begin);
  token.augmented = op;
  return token;
}

Token Lexer::read_comparison(Operator op, Operator with_equals) {
  const uint32_t begin = cursor_.at++;
  if (cursor_.peek() != '=') return make(TokenKind::kOperator, begin, op);
  cursor_.at++;
  return make(TokenKind::kOperator, begin, with_equals);
}

Token Lexer::read_operator() {
  const uint32_t begin = cursor_.at;
  const char second = cursor_.peek(1);
  const auto of_length = [&](TokenKind kind, uint32_t length) {
    cursor_.at += length;
    return make(kind, begin);
  };
  switch (cursor_.peek()) {
    case '(':
      return open_bracket(TokenKind::kOpenParen);
    case ')':
      return close_bracket(TokenKind::kCloseParen, '(');
    case '[':
      return open_bracket(TokenKind::kOpenBracket);
    case ']':
      return close_bracket(TokenKind::kCloseBracket, '[');
    case '{':
      return open_bracket(TokenKind::kOpenBrace);
    case '}':
      return close_bracket(TokenKind::kCloseBrace, '{');
    case ',':
      return of_length(TokenKind::kComma, 1);
    case ';':
      return of_length(TokenKind::kSemicolon, 1);
    case ':':
      if (second == '=' && !in_field_itself()) return of_length(TokenKind::kWalrus, 2);
      return of_length(TokenKind::kColon, 1);
    case '.':
      if (second == '.' && cursor_.peek(2) == '.') return of_length(TokenKind::kEllipsis, 3);
      return of_length(TokenKind::kDot, 1);
    case '=':
      if (second == '=') return read_comparison(Operator::kNoOperator, Operator::kEqual);
      return of_length(TokenKind::kAssign, 1);
    case '!':
      if (second == '=') return read_comparison(Operator::kNoOperator, Operator::kNotEqual);
      if (in_field_itself()) return of_length(TokenKind::kExclamation, 1);
      break;
    case '<':
      if (second == '<') return read_longer_operator(TokenKind::kOperator, Operator::kLeftShift, 2);
      return read_comparison(Operator::kLess, Operator::kLessEqual);
    case '>':
      if (second == '>')
        return read_longer_operator(TokenKind::kOperator, Operator::kRightShift, 2);
      return read_comparison(Operator::kGreater, Operator::kGreaterEqual);
    case '-':
      if (second == '>') return of_length(TokenKind::kArrow, 2);
      return read_longer_operator(TokenKind::kMinus, Operator::kSubtract, 1);
    case '+':
      return read_longer_operator(TokenKind::kPlus, Operator::kAdd, 1);
    case '*':
      if (second == '*') return read_longer_operator(TokenKind::kDoubleStar, Operator::kPower, 2);
      return read_longer_operator(TokenKind::kStar, Operator::kMultiply, 1);
    case '/':
      if (second == '/')
        return read_longer_operator(TokenKind::kOperator, Operator::kFloorDivide, 2);
      return read_longer_operator(TokenKind::kSlash, Operator::kDivide, 1);
    case '%':
      return read_longer_operator(TokenKind::kOperator, Operator::kModulo, 1);
    case '@':
      return read_longer_operator(TokenKind::kAt, Operator::kMatMultiply, 1);
    case '|':
      return read_longer_operator(TokenKind::kBar, Operator::kBitOr, 1);
    case '&':
      return read_longer_operator(TokenKind::kOperator, Operator::kBitAnd, 1);
    case '^':
      return read_longer_operator(TokenKind::kOperator, Operator::kBitXor, 1);
    case '~':
      return of_length(TokenKind::kTilde, 1);
    default:
      break;
  }
  return fail(std::string("invalid character '") + cursor_.peek() + "'");
}

Lexer::Piece Lexer::next_piece(const FStringQuote& quote) {
  while (!cursor_.at_end()) {
    const char c = cursor_.peek();
    const char second = cursor_.peek(1);
    if (c == quote.quote && (!quote.triple || (second == c && cursor_.peek(2) == c))) {
      if (quote.in_format) return Piece::kBroken;
      cursor_.at += quote.triple ? 3 : 1;
      return Piece::kClosed;
    }
    if (c == '\n' && !quote.triple) return Piece::kBroken;
    if (c == '\\' && !quote.raw && second == 'N' && cursor_.peek(2) == '{') {
      const size_t close = cursor_.text.find_first_of("}\n", cursor_.at);
      if (close == cursor_.text.npos || cursor_.text[close] == '\n') return Piece::kBroken;
      cursor_.at = static_cast<uint32_t>(close + 1);
    } else if (c == '\\' && second != '{' && second != '}') {
      cursor_.at++;
      if (!cursor_.at_end()) cursor_.skip();
    } else if (c == '{' && second == '{' && !quote.in_format) {
      cursor_.at += 2;
    } else if (c == '{') {
      cursor_.at++;
      return Piece::kField;
    } else if (c == '}') {
      cursor_.at++;
      if (quote.in_format) return Piece::kFormatEnd;
      if (second != '}') return Piece::kBroken;
      cursor_.at++;
    } else {
      cursor_.skip();
    }
  }
  return Piece::kBroken;
}

size_t Lexer::enter_field() {
  const size_t outer = field_;
  brackets_ += '{';
  field_ = brackets_.size();
  return outer;
}

bool Lexer::line_ends_with_colon() const {
  Cursor ahead = cursor_;
  const uint32_t end = skip_logical_line(ahead);
  return end > cursor_.at && cursor_.text[end - 1] == ':';
}

bool Lexer::skip_suite(LazyBody& body) {
  const Cursor behind_colon = cursor_;
  body.level = outer_indents_ + static_cast<uint32_t>(indents_.size());
  while (cursor_.peek() == ' ' || cursor_.peek() == '\t' || cursor_.peek() == '\f') cursor_.at++;
  bool found = !cursor_.at_end();
  if (cursor_.peek() == '#' || cursor_.peek() == '\n') {
    skip_comment(cursor_);
    cursor_.skip();
    body.begin = cursor_.at;
    body.line = cursor_.line;
    found = skip_block(cursor_, indents_.back().column);
  } else {
    body.begin = behind_colon.at;
    body.line = behind_colon.line;
    skip_logical_line(cursor_);
  }
  cursor_.at = static_cast<uint32_t>(std::min(size_t{cursor_.at}, cursor_.text.size()));
  body.end = cursor_.at;
  at_line_start_ = true;
  line_has_token_ = false;
  return found;
}

}  // namespace cohabit::python
