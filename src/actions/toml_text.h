// Texts of a TOML file; what is of another kind is none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

namespace cohabit {

inline std::string text_at(const toml::table& table, std::string_view key) {
  return table[key].value<std::string>().value_or("");
}

// Of an array.
template <class Node>
std::vector<std::string> texts_of(const Node& node) {
  std::vector<std::string> texts;
  if (const toml::array* list = node.as_array())
    for (const toml::node& one : *list)
      if (const auto text = one.template value<std::string>()) texts.push_back(*text);
  return texts;
}

}  // namespace cohabit
