// Text, beyond what the standard library does.
#pragma once

#include <string>
#include <string_view>

namespace cohabit {

// Puts `by` wherever `what` stands; what was put in is not looked at again.
inline void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

// Without blanks and line ends on either side.
inline std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

}  // namespace cohabit
