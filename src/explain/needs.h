// Which literals a text must contain for a pattern to match. RE2 works it out from the expressions
// (FilteredRE2), for which it has to compile them all: 35 ms of a command that takes 10 ms without.
// So that is done when the command is built, by cmake/knowledge.
#pragma once

#include <algorithm>
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
  std::vector<std::string_view> words;  // lower case
  std::vector<uint32_t> first_use;      // by word, and the end of the last one's
  std::vector<Use> uses;                // by word
  std::vector<uint16_t> needs;          // how many, by pattern
};

// The patterns that can match a text that contains some words. Keeps what was counted last.
class MetNeeds {
 public:
  explicit MetNeeds(const Needs& needs);
  // Of those that such a function says yes to, in order. Valid until the next call.
  template <class Function>
  const std::vector<size_t>& of(const std::vector<int>& words, Function is_asked_for) {
    round_++;
    patterns_.clear();
    for (const int word : words)
      for (uint32_t i = needs_.first_use[static_cast<size_t>(word)];
           i < needs_.first_use[static_cast<size_t>(word) + 1]; i++)
        if (is_asked_for(needs_.uses[i].pattern)) count(needs_.uses[i]);
    std::sort(patterns_.begin(), patterns_.end());
    return patterns_;
  }

 private:
  // Counted in this round, or in none yet.
  struct Count {
    uint64_t round = 0;
    uint16_t met = 0;
  };
  void count(Needs::Use use);

  const Needs& needs_;
  uint64_t round_ = 0;
  std::vector<uint32_t> first_need_;  // by pattern
  std::vector<uint64_t> need_rounds_;
  std::vector<Count> counts_;  // by pattern
  std::vector<size_t> patterns_;
};

// The generated table.
const Needs& needs_of_patterns();

}  // namespace cohabit::explain
