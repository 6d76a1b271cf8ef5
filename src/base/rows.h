// The tables of data/, which are compiled into the command: lines of fields separated by tabs, "#"
// in front of what is for people.
#pragma once

#include <string_view>
#include <vector>

namespace cohabit {

using TableRow = std::vector<std::string_view>;

// The parts between the separators: one more than there are of those.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t end = text.find(separator); end != text.npos; end = text.find(separator)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

// The same of a list, which may be empty.
inline std::vector<std::string_view> split_list(std::string_view text, char separator) {
  return text.empty() ? std::vector<std::string_view>() : split(text, separator);
}

// Rows that have at least this many fields; views into `text`.
inline std::vector<TableRow> table_rows(std::string_view text, size_t fields) {
  std::vector<TableRow> rows;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + (line.size() < text.size() ? 1 : 0));
    if (line.empty() || line.front() == '#') continue;
    TableRow row = split(line, '\t');
    if (row.size() >= fields) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace cohabit
