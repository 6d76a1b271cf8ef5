#include "facts/python/entry_points.h"

#include <algorithm>
#include <utility>

namespace cohabit {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

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

std::vector<Script> parse_scripts(std::string_view entry_points) {
  std::vector<Script> scripts;
  bool is_wanted = false;
  for (size_t begin = 0; begin < entry_points.size();) {
    const size_t end = std::min(entry_points.find('\n', begin), entry_points.size());
    const std::string_view line = trimmed(entry_points.substr(begin, end - begin));
    begin = end + 1;
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[') {
      is_wanted = line == "[console_scripts]" || line == "[gui_scripts]";
      continue;
    }
    const size_t equal = line.find('=');
    if (!is_wanted || equal == line.npos) continue;
    Script script{std::string(trimmed(line.substr(0, equal))), call_of(line.substr(equal + 1))};
    if (is_plain(script.name) && is_plain(script.call)) scripts.push_back(std::move(script));
  }
  return scripts;
}

}  // namespace cohabit
