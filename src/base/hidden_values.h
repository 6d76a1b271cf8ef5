// Values of secrets in other text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/secrets.h"

namespace cohabit {

// A bundle has as many x in the place of each (actions/redaction.h): they are not looked for inside
// of what stands for another one.
inline bool stands_alone(const std::string& text, size_t begin, size_t end) {
  return (begin == 0 || text[begin - 1] != 'x') && (end == text.size() || text[end] != 'x');
}

inline void hide_values(std::string& text, const std::vector<std::string>& values) {
  for (const std::string& value : values) {
    const bool is_stand_in = value.find_first_not_of('x') == std::string::npos;
    for (size_t at = text.find(value); at != std::string::npos; at = text.find(value, at)) {
      if (is_stand_in && !stands_alone(text, at, at + value.size())) {
        at++;
        continue;
      }
      text.replace(at, value.size(), kHiddenSecret);
      at += kHiddenSecret.size();
    }
  }
}

}  // namespace cohabit
