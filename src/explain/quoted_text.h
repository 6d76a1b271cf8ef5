// A log that went through something that writes text for a program or a page: a string of JSON or
// Python, HTML, an editor that makes quotation marks curly.
#pragma once

#include <string>
#include <string_view>

namespace cohabit::explain {

void append_utf8(std::string& text, uint32_t unit);

// Lines end where the string says so, with a carriage return: line feeds are those of the text, so
// that its lines have the same numbers.
std::string as_it_was_printed(std::string_view text);

}  // namespace cohabit::explain
