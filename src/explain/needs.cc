#include "explain/needs.h"

#include <algorithm>
#include <tuple>

namespace cohabit::explain {

std::vector<size_t> Needs::met_by(const std::vector<int>& words_there) const {
  std::vector<Use> met;
  for (const int word : words_there) {
    const auto at = static_cast<size_t>(word);
    met.insert(met.end(), uses.begin() + first_use[at], uses.begin() + first_use[at + 1]);
  }
  const auto place = [](const Use& use) { return std::tuple(use.pattern, use.need); };
  std::sort(met.begin(), met.end(),
            [&](const Use& a, const Use& b) { return place(a) < place(b); });
  std::vector<size_t> patterns;
  for (size_t i = 0; i < met.size();) {
    const uint16_t pattern = met[i].pattern;
    size_t count = 0;
    for (int last = -1; i < met.size() && met[i].pattern == pattern; last = met[i++].need)
      if (met[i].need != last) count++;
    if (count == needs[pattern]) patterns.push_back(pattern);
  }
  return patterns;
}

}  // namespace cohabit::explain
