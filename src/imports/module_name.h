#pragma once

#include <algorithm>
#include <string_view>

namespace cohabit::python {

// Of dotted names in ASCII.
inline bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.';
}

// Whether an import statement of compiled code may have it; empty in "from . import a".
inline bool is_module_name(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_name_character(c) || static_cast<unsigned char>(c) >= 0x80;
  });
}

}  // namespace cohabit::python
