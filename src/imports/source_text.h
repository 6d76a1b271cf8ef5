// From the bytes of a Python file to the text that the parser sees.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cohabit::python {

// Makes text with "\n" line breaks and without BOM of what a file holds: UTF-8, but for `stray`.
// Returns what is wrong with it, or nothing.
// `stray`: where the first byte is that is not UTF-8. CPython 3.8 to 3.13 takes such bytes in the
// comments of a module that is imported (a script may have them only where UTF-8 is declared).
struct StrayByte {
  uint32_t line = 0;  // 0: there is none
  uint8_t byte = 0;
  bool is_declared = false;  // as UTF-8, by a coding line or a BOM
};
std::string_view make_source_text(std::string& bytes, StrayByte& stray);

// Appends the code point as UTF-8; a surrogate as the three bytes that it would have.
void append_code_point(std::string& text, uint32_t code);

}  // namespace cohabit::python
