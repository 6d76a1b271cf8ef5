// The values of string and number literals.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "imports/scanner.h"

namespace cohabit::python {

// What follows the prefix of a string token without its quotes.
std::string_view strip_quotes(std::string_view token, const StringPrefix& prefix);

// Appends the value of the text between quotes. Returns what is wrong with it, or nothing.
std::string_view append_value(std::string& value, std::string_view text,
                              const StringPrefix& prefix);

// The value of an integer literal, if it fits.
std::optional<int64_t> integer_value(std::string_view literal);

}  // namespace cohabit::python
