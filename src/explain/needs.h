// Which literals a text must contain for a pattern to match. RE2 works it out from the expressions
// (FilteredRE2), for which it has to compile them all: 35 ms of a command that takes 10 ms without.
// So that is done when the command is built, by cmake/pattern_needs.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace cohabit::explain {

// A pattern can match where each of its needs is met: one of some literals is there.
struct Needs {
  // A literal meets this need of this pattern.
  struct Use {
    uint16_t pattern = 0, need = 0;
  };
  uint64_t fingerprint = 0;             // of the patterns
  std::vector<std::string_view> words;  // lower case
  std::vector<uint32_t> first_use;      // by word, and the end of the last one's
  std::vector<Use> uses;                // by word
  std::vector<uint16_t> needs;          // how many, by pattern
  // Whether a pattern that such a function says yes to needs this word.
  template <class Function>
  bool any_use(size_t word, Function function) const {
    for (uint32_t i = first_use[word]; i < first_use[word + 1]; i++)
      if (function(uses[i].pattern)) return true;
    return false;
  }
  // The patterns that can match a text that contains these words, in order.
  std::vector<size_t> met_by(const std::vector<int>& words_there) const;
};

// The generated table.
const Needs& needs_of_patterns();

}  // namespace cohabit::explain
