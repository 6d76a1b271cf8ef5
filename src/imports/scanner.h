// Skips Python source without parsing it: to the end of a string, a logical line or a function.
//
// What ends a block is the first line that is indented less, but a line inside of brackets or of a
// triple-quoted string is none; so strings, comments, brackets and continuations must be known.
#pragma once

#include <cstdint>
#include <string_view>

namespace cohabit::python {

// Nested { } of f-strings, one inside of the other; CPython allows 150.
inline constexpr int kMaxNestedFStrings = 150;

// A place in the text. Behind the end there are only '\0', which a source never contains.
struct Cursor {
  std::string_view text;
  uint32_t at = 0;
  uint32_t line = 1;

  char peek(uint32_t ahead = 0) const {
    return at + size_t{ahead} < text.size() ? text[at + ahead] : '\0';
  }
  bool at_end() const { return at >= text.size(); }
  // Steps over one character.
  void skip() {
    if (peek() == '\n') line++;
    at++;
  }
};

// How far the first token of a line is to the right; tabs go to the next multiple of 8, or count 1
// in the alternative: where the two disagree on what is deeper, CPython refuses the file.
struct Indentation {
  uint32_t column = 0, alternative = 0;
};

struct StringPrefix {
  uint8_t length = 0;
  bool is_raw = false, is_bytes = false, is_formatted = false;
  bool is_valid = false;
};

StringPrefix read_prefix(std::string_view letters);

// From the start of a line to its first token (or line break).
Indentation skip_indentation(Cursor& cursor);

// To the end of the line, before its line break.
void skip_comment(Cursor& cursor);

// From the opening quote of a string without fields to behind its closing one; false: there is
// none.
bool skip_string(Cursor& cursor);

// To behind the line break that ends the statement. Returns where the line's last token ends.
uint32_t skip_logical_line(Cursor& cursor);

// From the start of a line to that of the first one that is not deeper than column. False when no
// line is deeper.
bool skip_block(Cursor& cursor, uint32_t column);

}  // namespace cohabit::python
