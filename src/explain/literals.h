// Finding any of some hundred literals in a text of any size, in one pass that skips most bytes.
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cohabit::explain {

class Literals {
 public:
  // Lower case; letters of the text are compared without case. None shorter than kShortest.
  static constexpr size_t kShortest = 8;
  static constexpr size_t kMostShift = 5;
  explicit Literals(std::vector<std::string> words);

  // The first place at or after `from` where a word begins.
  size_t find(std::string_view text, size_t from) const;
  bool any_begins(std::string_view text, size_t at) const;
  // Adds the indexes of the words that begin at `at`.
  void words_at(std::string_view text, size_t at, std::vector<int>& words) const;

  // How far a search goes on, by the last four bytes that it has seen.
  static constexpr unsigned kBits = 15;
  using Shifts = std::array<uint8_t, size_t{1} << kBits>;
  static constexpr uint8_t kHit = 0x81;  // a word may begin here; if not, go on by one

 private:
  friend class LiteralScan;
  static void add_shifts(const std::string& word, Shifts& shifts);
  static constexpr unsigned kHeadBits = 14;
  static uint32_t hash_of_head(uint64_t head, unsigned bits);  // in lower case
  // A word by its first eight bytes.
  struct Entry {
    uint64_t head = 0;
    uint32_t word = 0;
  };
  bool begins(std::string_view text, size_t at, const Entry& entry, uint64_t head) const;
  // Tells most places where no word begins by a table that stays in the processor's first cache.
  static constexpr unsigned kHintBits = 15;
  static uint32_t hint_of(uint64_t head) { return hash_of_head(head, kHintBits); }
  bool may_begin(std::string_view text, size_t at) const;

  std::vector<std::string> words_;
  Shifts shifts_;
  std::bitset<size_t{1} << kHintBits> hints_;
  std::vector<uint32_t> first_;  // by hash of the first eight bytes: where they begin in entries_
  std::vector<Entry> entries_;
};

// The places of a part of a text where a word may begin (any_begins decides), block after block.
class LiteralScan {
 public:
  LiteralScan(const Literals& literals, std::string_view text, size_t begin, size_t end);
  // From now on only words of which this says yes are searched for (others may be found too).
  template <class Function>
  void search_for(Function is_wanted) {
    shifts_.fill(Literals::kMostShift);
    for (size_t i = 0; i < literals_.words_.size(); i++)
      if (is_wanted(static_cast<int>(i))) Literals::add_shifts(literals_.words_[i], shifts_);
  }
  bool at_end() const { return from_ >= end_; }
  size_t place() const { return from_; }
  // What is before this place is of no interest.
  void skip_to(size_t place) { from_ = std::max(from_, std::min(place, end_)); }
  // In order. Valid until the next call.
  const std::vector<size_t>& next_block();

 private:
  static constexpr size_t kLanes = 4;
  static constexpr size_t kLane = size_t{1} << 14;
  struct Lane {
    uint32_t at = 0, end = 0;  // from the block's begin
    uint32_t* next = nullptr;  // candidate
  };
  void step(const char* block, Lane& lane) const;
  void run_together(const char* block, std::array<Lane, kLanes>& lanes) const;

  const Literals& literals_;
  Literals::Shifts shifts_;
  std::string_view text_;
  size_t from_ = 0, end_ = 0;
  std::array<std::vector<uint32_t>, kLanes> candidates_;
  std::vector<size_t> places_;
};

}  // namespace cohabit::explain
