#include "explain/knowledge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace cohabit::explain {

std::string fill_in(std::string_view text, const std::vector<Capture>& captures) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t open = text.find('{', at);
    const size_t close = open == text.npos ? open : text.find('}', open);
    if (close == text.npos) return result.append(text.substr(at));
    result.append(text.substr(at, open - at));
    const std::string_view inside = text.substr(open + 1, close - open - 1);
    const size_t bar = std::min(inside.find('|'), inside.size());
    const auto found = std::find_if(captures.begin(), captures.end(), [&](const Capture& capture) {
      return capture.name == inside.substr(0, bar);
    });
    // What may be missing follows a sentence that is whole without it.
    const bool is_added =
        bar < inside.size() && !result.empty() &&
        (std::isalpha(static_cast<unsigned char>(result.back())) || result.back() == ')');
    if (found != captures.end())
      result.append(is_added ? fmt::format(" ({})", found->value) : found->value);
    else if (bar < inside.size())
      result.append(inside.substr(bar + 1));
    else
      result.append(text.substr(open, close + 1 - open));
    at = close + 1;
  }
  return result;
}

}  // namespace cohabit::explain
