#include "facts/python/entry_points.h"

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

std::vector<Script> parse_scripts(std::string_view entry_points) {
  std::vector<Script> scripts;
  bool is_wanted = false;
  for (const std::string_view text : split(entry_points, '\n')) {
    const std::string_view line = trim(text);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[') {
      is_wanted = line == "[console_scripts]" || line == "[gui_scripts]";
      continue;
    }
    const size_t equal = line.find('=');
    if (!is_wanted || equal == line.npos) continue;
    Script script{std::string(trim(line.substr(0, equal))), call_of(line.substr(equal + 1))};
    if (is_plain(script.name) && is_plain(script.call)) scripts.push_back(std::move(script));
  }
  return scripts;
}

}  // namespace cohabit
