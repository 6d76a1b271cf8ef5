// Words in texts, and how far two are apart.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string_view>
#include <vector>

namespace cohabit {

// Letters to insert, to leave out or to replace (Levenshtein), one row at a time.
inline size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<size_t> row(to.size() + 1);
  for (size_t i = 0; i <= to.size(); i++) row[i] = i;
  for (size_t i = 1; i <= from.size(); i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= to.size(); j++) {
      const size_t replaced = diagonal + (from[i - 1] != to[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

// What names are made of.
inline bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// Whether the word stands somewhere with no letter, digit or "_" beside it.
inline bool contains_word(std::string_view text, std::string_view word) {
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    const void* hit = memmem(at, static_cast<size_t>(end - at), word.data(), word.size());
    if (!hit) return false;
    const char* found = static_cast<const char*>(hit);
    const char* after = found + word.size();
    if ((found == text.data() || !is_word(found[-1])) && (after == end || !is_word(*after)))
      return true;
    at = found + 1;
  }
  return false;
}

}  // namespace cohabit
