// The tables of data/, which are compiled into the command: lines of fields separated by tabs, "#"
// in front of what is for people.
#pragma once

#include <string_view>
#include <vector>

namespace cohabit {

using TableRow = std::vector<std::string_view>;

// Rows that have at least this many fields; views into `text`.
inline std::vector<TableRow> table_rows(std::string_view text, size_t fields) {
  std::vector<TableRow> rows;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + (line.size() < text.size() ? 1 : 0));
    if (line.empty() || line.front() == '#') continue;
    TableRow row;
    for (size_t tab = line.find('\t'); tab != line.npos; tab = line.find('\t')) {
      row.push_back(line.substr(0, tab));
      line.remove_prefix(tab + 1);
    }
    row.push_back(line);
    if (row.size() >= fields) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace cohabit
