#include "explain/patterns.h"

#include <fmt/format.h>

#include <algorithm>

namespace cohabit::explain {
namespace {

Pattern make(size_t mechanism, size_t index, bool is_tell, std::string_view text) {
  const bool goes_on = text.find("\\n") != text.npos || text.find("\\s") != text.npos;
  return {static_cast<uint32_t>(mechanism), static_cast<uint32_t>(index), is_tell, goes_on, text};
}

void add_signals(std::span<const Mechanism> mechanisms, size_t mechanism, bool at_end,
                 std::vector<Pattern>& patterns) {
  const std::span<const Signal> signals = mechanisms[mechanism].signals;
  for (size_t i = 0; i < signals.size(); i++)
    if (signals[i].at_end == at_end)
      patterns.push_back(make(mechanism, i, false, signals[i].pattern));
}

}  // namespace

std::vector<Pattern> patterns_of(std::span<const Mechanism> mechanisms) {
  std::vector<Pattern> patterns;
  for (size_t i = 0; i < mechanisms.size(); i++) {
    add_signals(mechanisms, i, false, patterns);
    for (size_t j = 0; j < mechanisms[i].tells.size(); j++)
      patterns.push_back(make(i, j, true, mechanisms[i].tells[j].pattern));
  }
  std::stable_partition(patterns.begin(), patterns.end(),
                        [](const Pattern& pattern) { return pattern.goes_on; });
  return patterns;
}

std::vector<Pattern> last_line_patterns_of(std::span<const Mechanism> mechanisms) {
  std::vector<Pattern> patterns;
  for (size_t i = 0; i < mechanisms.size(); i++) add_signals(mechanisms, i, true, patterns);
  for (Pattern& pattern : patterns) pattern.goes_on = false;
  return patterns;
}

std::string safe_for_latin1(std::string_view pattern) {
  const bool is_ascii = std::none_of(pattern.begin(), pattern.end(),
                                     [](char c) { return static_cast<unsigned char>(c) > 0x7F; });
  return std::string(pattern) + (is_ascii ? "" : R"(|\x00\b\B)");
}

std::string what_is(std::span<const Mechanism> mechanisms, const Pattern& pattern) {
  return fmt::format("data/mechanisms, {}: the pattern {}", mechanisms[pattern.mechanism].slug,
                     pattern.text);
}

}  // namespace cohabit::explain
