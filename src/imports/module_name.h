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

// `__file__` and others, which the import gives to all or many modules. A version a module has only
// from its own code.
inline bool is_of_any_module(std::string_view name) {
  return name.starts_with("__") && !name.starts_with("__version");
}

// "a" and "c" of "a.b.c".
inline std::string_view top_of(std::string_view name) {
  return name.substr(0, name.find('.'));
}
inline std::string_view last_of(std::string_view name) {
  return name.substr(name.rfind('.') + 1);
}

}  // namespace cohabit::python
