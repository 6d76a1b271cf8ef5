// How often each pattern is tried in a part of a text. A text may be full of near misses: lines
// that have all literals of a pattern and do not match. To try each costs up to a hundred times
// what it costs to read it, so that a pattern that is tried in vain again and again rests for some
// of the text, for longer each time; and all tries together cost no more than a share of the text's
// size. What rests is not even searched for (literals.h). A few tries of each pattern are free.
// A pattern that needs several literals is searched for by one of them, and by another one where
// the first is frequent and the others are not there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "explain/needs.h"
#include "explain/patterns.h"

namespace cohabit::explain {

// The literals for which a line is looked at. Of one need is enough: where it is not met, no match
// is. A pattern that goes on may begin in a line with any of its literals.
struct Triggers {
  Triggers(const Needs& needs, const std::vector<Pattern>& patterns);
  struct Use {
    uint16_t pattern = 0, choice = 0;
  };
  using Words = std::vector<uint16_t>;
  std::vector<std::vector<Words>> choices;  // by pattern, the best first
  std::vector<std::vector<Use>> uses;       // by word
};

class Effort {
 public:
  // Where nothing rests, the share of the text's size is the only limit.
  Effort(const Triggers& triggers, bool may_rest);

  bool is_wanted(size_t pattern) const { return states_[pattern].is_wanted; }
  bool is_wanted_word(int word) const { return wanted_by_[static_cast<size_t>(word)] > 0; }
  // For what a look at a line costs, in bytes that are shown to an expression.
  void pay(size_t bytes) { spent_ += bytes; }
  void begin_look() { look_++; }
  void tried(size_t pattern, size_t bytes, bool in_vain);
  // A line was looked at because of this word: what else was to be tried lacks other literals.
  void end_look(int word);
  void found_often(size_t pattern);
  // So many bytes of the part are behind us. Whether other words are wanted than at the last time.
  bool pass(size_t bytes);

 private:
  struct State {
    size_t shown = 0;   // bytes
    uint32_t left = 0;  // tries in vain until it rests
    uint16_t choice = 0;
    uint64_t look = 0;           // in which it was tried last
    size_t rest = 0, until = 0;  // bytes
    bool is_wanted = true, is_done = false, is_watched = false;
  };
  void set_wanted(size_t pattern, bool wanted);
  void count(size_t pattern, bool wanted);
  void rest(size_t pattern);
  void watch(size_t pattern);
  bool is_dear(const State& state) const;

  const Triggers& triggers_;
  bool may_rest_ = true;
  std::vector<State> states_;
  std::vector<uint16_t> wanted_by_;  // by word: so many patterns
  uint64_t look_ = 0;
  size_t spent_ = 0, income_ = 0, passed_ = 0;
  bool has_changed_ = true;
  std::vector<size_t> watched_;  // patterns that were shown enough to rest, or came to their end
};

}  // namespace cohabit::explain
