#include "explain/effort.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace cohabit::explain {
namespace {

// Bytes shown to expressions: about a nanosecond each.
constexpr size_t kFirstIncome = size_t{4} << 20;
constexpr size_t kFree = size_t{16} << 10;  // of each pattern
constexpr size_t kTry = 200;                // what a try costs besides
constexpr uint32_t kInVain = 500;           // until it rests first
constexpr uint32_t kAgainInVain = 50;
constexpr size_t kFirstRest = size_t{64} << 10;
constexpr size_t kLongestRest = size_t{4} << 20;

// Of a need, how long its shortest literal is: the longer, the seldomer it is met, most likely.
size_t shortest_of(const Triggers::Words& need, const Needs& needs) {
  size_t least = std::string_view::npos;
  for (const uint16_t word : need) least = std::min(least, needs.words[word].size());
  return least;
}

}  // namespace

Triggers::Triggers(const Needs& needs, const std::vector<Pattern>& patterns)
    : choices(needs.needs.size()), uses(needs.words.size()) {
  for (size_t pattern = 0; pattern < choices.size(); pattern++)
    choices[pattern].resize(patterns[pattern].goes_on ? 1 : needs.needs[pattern]);
  for (size_t word = 0; word < needs.words.size(); word++)
    for (uint32_t i = needs.first_use[word]; i < needs.first_use[word + 1]; i++) {
      const Needs::Use& use = needs.uses[i];
      choices[use.pattern][patterns[use.pattern].goes_on ? 0 : use.need].push_back(
          static_cast<uint16_t>(word));
    }
  for (size_t pattern = 0; pattern < choices.size(); pattern++) {
    auto& of_pattern = choices[pattern];
    std::stable_sort(of_pattern.begin(), of_pattern.end(), [&](const Words& a, const Words& b) {
      return shortest_of(a, needs) > shortest_of(b, needs);
    });
    for (size_t choice = 0; choice < of_pattern.size(); choice++)
      for (const uint16_t word : of_pattern[choice])
        uses[word].push_back({static_cast<uint16_t>(pattern), static_cast<uint16_t>(choice)});
  }
}

Effort::Effort(const Triggers& triggers, bool may_rest)
    : triggers_(triggers),
      may_rest_(may_rest),
      states_(triggers.choices.size()),
      wanted_by_(triggers.uses.size()),
      income_(kFirstIncome) {
  for (size_t pattern = 0; pattern < states_.size(); pattern++) {
    states_[pattern].left = kInVain;
    count(pattern, true);
  }
}

void Effort::count(size_t pattern, bool wanted) {
  for (const uint16_t word : triggers_.choices[pattern][states_[pattern].choice]) {
    const bool was = wanted_by_[word] > 0;
    wanted_by_[word] = static_cast<uint16_t>(wanted_by_[word] + (wanted ? 1 : -1));
    has_changed_ |= was != (wanted_by_[word] > 0);
  }
}

void Effort::set_wanted(size_t pattern, bool wanted) {
  if (states_[pattern].is_wanted == wanted) return;
  states_[pattern].is_wanted = wanted;
  count(pattern, wanted);
}

void Effort::watch(size_t pattern) {
  if (!std::exchange(states_[pattern].is_watched, true)) watched_.push_back(pattern);
}

// By another literal, if there is one that it was not searched for by; it is new in the next block.
void Effort::rest(size_t pattern) {
  State& state = states_[pattern];
  watch(pattern);
  set_wanted(pattern, false);
  if (state.choice + size_t{1} < triggers_.choices[pattern].size()) {
    state.choice++;
    state.left = kInVain;
    return;
  }
  state.left = kAgainInVain;
  state.rest = std::clamp(2 * state.rest, kFirstRest, kLongestRest);
  state.until = passed_ + state.rest;
}

bool Effort::is_dear(const State& state) const {
  return state.shown >= kFree && spent_ > income_;
}

void Effort::tried(size_t pattern, size_t bytes, bool in_vain) {
  State& state = states_[pattern];
  state.look = look_;
  state.shown += kTry + bytes;
  spent_ += kTry + bytes;
  if (state.shown >= kFree) watch(pattern);
  if (in_vain && may_rest_ && --state.left == 0) rest(pattern);
  if (is_dear(state)) set_wanted(pattern, false);
}

void Effort::end_look(int word) {
  for (const Triggers::Use& use : triggers_.uses[static_cast<size_t>(word)]) {
    const State& state = states_[use.pattern];
    if (state.is_wanted && state.choice == use.choice && state.look != look_)
      tried(use.pattern, 0, true);
  }
}

void Effort::found_often(size_t pattern) {
  states_[pattern].is_done = true;
  watch(pattern);
  set_wanted(pattern, false);
}

bool Effort::pass(size_t bytes) {
  income_ += (bytes - passed_) / 2;
  passed_ = bytes;
  // All others are wanted: of most texts all to the end.
  for (const size_t pattern : watched_) {
    const State& state = states_[pattern];
    set_wanted(pattern, !state.is_done && !is_dear(state) && state.until <= passed_);
  }
  return std::exchange(has_changed_, false);
}

}  // namespace cohabit::explain
