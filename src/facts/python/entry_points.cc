#include "facts/python/entry_points.h"

#include <algorithm>
#include <utility>

#include "base/rows.h"
#include "base/text.h"

namespace cohabit {
namespace {

// No path, and nothing that a row of CSV would have to quote.
bool is_plain(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/,\"\0", 4)) == name.npos;
}

// "module:function", without blanks and without the extras behind it.
std::string call_of(std::string_view value) {
  std::string call(value.substr(0, value.find('[')));
  std::erase_if(call, [](char c) { return c == ' ' || c == '\t' || c == '\r'; });
  return call;
}

}  // namespace

std::vector<EntryPoint> parse_entry_points(std::string_view text) {
  std::vector<EntryPoint> entries;
  std::string_view group;
  for (const std::string_view raw : split(text, '\n')) {
    const std::string_view line = trim(raw);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[') {
      group = line.ends_with(']') ? trim(line.substr(1, line.size() - 2)) : std::string_view();
      continue;
    }
    const size_t equal = line.find('=');
    if (equal == line.npos) continue;
    entries.push_back({std::string(group), std::string(trim(line.substr(0, equal))),
                       call_of(line.substr(equal + 1))});
  }
  std::stable_partition(entries.begin(), entries.end(),
                        [](const EntryPoint& entry) { return entry.is_script(); });
  return entries;
}

std::vector<Script> parse_scripts(std::string_view text) {
  std::vector<Script> scripts;
  for (EntryPoint& entry : parse_entry_points(text))
    if (entry.is_script() && is_plain(entry.name) && is_plain(entry.call))
      scripts.push_back({std::move(entry.name), std::move(entry.call)});
  return scripts;
}

}  // namespace cohabit
