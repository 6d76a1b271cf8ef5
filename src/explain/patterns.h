// The expressions of all mechanisms, in the order in which everything about them is kept.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "explain/knowledge.h"

namespace cohabit::explain {

// Of a signal of a mechanism, or of a tell.
struct Pattern {
  uint32_t mechanism = 0, index = 0;
  bool is_tell = false;
  bool goes_on = false;   // in the next lines
  std::string_view text;  // the mechanism's
};

// Those that are looked for anywhere, first the ones that go on.
std::vector<Pattern> patterns_of(std::span<const Mechanism> mechanisms);
// Those that the last lines only are shown to.
std::vector<Pattern> last_line_patterns_of(std::span<const Mechanism> mechanisms);

// As RE2 takes it for bytes (Latin-1).
// RE2 first looks for what all alternatives begin with. Where that is one byte above 127, it looks
// for its UTF-8 form in Latin-1 too and finds nothing ("找不到|未找到", RE2 of Debian 12,
// 2022-06-01). An alternative that begins otherwise, and that no text matches (\b
// and \B in one place), keeps it from that.
std::string safe_for_latin1(std::string_view pattern);

// "data/mechanisms, SLUG: the pattern TEXT", for messages.
std::string what_is(std::span<const Mechanism> mechanisms, const Pattern& pattern);

}  // namespace cohabit::explain
