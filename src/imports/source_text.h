// From the bytes of a Python file to the text that the parser sees.
#pragma once

#include <string>
#include <string_view>

namespace cohabit::python {

// Makes UTF-8 with "\n" line breaks and without BOM of what a file holds. Returns what is wrong
// with it, or nothing.
std::string_view make_source_text(std::string& bytes);

// Appends the code point as UTF-8; a surrogate as the three bytes that it would have.
void append_code_point(std::string& text, uint32_t code);

}  // namespace cohabit::python
