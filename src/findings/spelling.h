// How far two words are apart.
#pragma once

#include <algorithm>
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

}  // namespace cohabit
