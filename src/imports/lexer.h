// The tokens of Python source, one at a time: what stands in a function's body is never seen.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "imports/scanner.h"
#include "imports/syntax.h"

namespace cohabit::python {

inline constexpr size_t kMaxBrackets = 200, kMaxIndents = 100;  // those of CPython

enum class TokenKind : uint8_t {
  kEnd,
  kError,  // Lexer::error says what
  kNewline,
  kIndent,
  kDedent,
  kName,
  kInteger,
  kNumber,
  kString,   // with prefix and quotes
  kFString,  // only prefix and opening quote: the parser reads on with next_piece()
  kParsed,   // an expression: where the parser knows later what it means, it puts this back
  kOpenParen,
  kCloseParen,
  kOpenBracket,
  kCloseBracket,
  kOpenBrace,
  kCloseBrace,
  kComma,
  kColon,
  kSemicolon,
  kDot,
  kEllipsis,
  kArrow,
  kAssign,
  kAugmented,  // Token::augmented says which
  kWalrus,
  kExclamation,
  kOperator,  // Token::op says which; so it does for those below that are operators as well
  kAt,
  kStar,
  kDoubleStar,
  kSlash,
  kMinus,
  kPlus,
  kTilde,
  kBar,
  kFalse,
  kNone,
  kTrue,
  kAnd,
  kAs,
  kAssert,
  kAsync,
  kAwait,
  kBreak,
  kClass,
  kContinue,
  kDef,
  kDel,
  kElif,
  kElse,
  kExcept,
  kFinally,
  kFor,
  kFrom,
  kGlobal,
  kIf,
  kImport,
  kIn,
  kIs,
  kLambda,
  kNonlocal,
  kNot,
  kOr,
  kPass,
  kRaise,
  kReturn,
  kTry,
  kWhile,
  kWith,
  kYield,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  Operator op = Operator::kNoOperator;
  Operator augmented = Operator::kNoOperator;
  uint32_t begin = 0, end = 0;
  uint32_t line = 1;
};

// Which quote ends the literal text of an f-string; inside of a field's format, '}' does too.
struct FStringQuote {
  char quote = 0;
  bool triple = false;
  bool raw = false;
  bool in_format = false;
};

class Lexer {
 public:
  enum class Piece : uint8_t { kField, kClosed, kFormatEnd, kBroken };

  // Reads the body in text; whole_lines: it starts with the first line of a block.
  Lexer(std::string_view text, const LazyBody& body, bool whole_lines);

  Token next();
  const std::string& error() const { return error_; }

  // Moves over literal text of an f-string: to behind the brace that opens a field or ends a
  // format, or behind the closing quote. Doubled braces stay in the text.
  Piece next_piece(const FStringQuote& quote);
  // Behind the { of a field: what follows are tokens until its } or a format. Returns what
  // leave_field wants back.
  size_t enter_field();
  void leave_field(size_t outer) { field_ = outer; }
  void close_field_format() { brackets_.pop_back(); }
  bool is_full() const { return brackets_.size() >= kMaxBrackets; }
  bool in_field_itself() const { return field_ != 0 && brackets_.size() == field_; }

  uint32_t position() const { return cursor_.at; }
  uint32_t line() const { return cursor_.line; }
  // Whether the logical line that the cursor is in ends with a colon.
  bool line_ends_with_colon() const;
  // Skips the suite behind the colon of a def, false: there is none.
  bool skip_suite(LazyBody& body);

 private:
  Token make(TokenKind kind, uint32_t begin, Operator op = Operator::kNoOperator) const;
  Token fail(std::string message);
  bool start_line(Token& token);
  bool change_indentation(Indentation indentation, Token& token);
  bool skip_blanks();
  Token end_of_text();
  Token read_name();
  Token read_string(uint32_t begin, const StringPrefix& prefix);
  Token read_number();
  bool read_digits(bool (*is_digit)(char));
  Token read_based_number(uint32_t begin);
  Token end_number(uint32_t begin, TokenKind kind);
  Token read_operator();
  Token read_longer_operator(TokenKind kind, Operator op, uint32_t length);
  Token read_comparison(Operator op, Operator with_equals);
  Token open_bracket(TokenKind kind);
  Token close_bracket(TokenKind kind, char opening);

  Cursor cursor_;
  std::vector<Indentation> indents_;
  uint32_t outer_indents_;
  std::string brackets_;  // those open, innermost last
  size_t field_ = 0;      // size of brackets_ just inside of the innermost field of an f-string
  uint32_t dedents_ = 0;  // still to be given out
  bool at_line_start_;
  bool line_has_token_ = false;
  std::string error_;
};

}  // namespace cohabit::python
