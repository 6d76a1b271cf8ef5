// Finding any of some hundred literals in a text of any size, in one pass that skips most bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cohabit::explain {

class Literals {
 public:
  // Lower case; letters of the text are compared without case. None shorter than kShortest.
  static constexpr size_t kShortest = 8;
  explicit Literals(std::vector<std::string> words);

  // The first place at or after `from` where a word begins.
  size_t find(std::string_view text, size_t from) const;
  bool any_begins(std::string_view text, size_t at) const;
  // Adds the indexes of the words that begin at `at`.
  void words_at(std::string_view text, size_t at, std::vector<int>& words) const;

 private:
  friend class LiteralScan;
  static constexpr unsigned kBits = 15;
  static constexpr unsigned kHeadBits = 14;
  static uint32_t hash_of_head(uint64_t head);  // in lower case
  // A word by its first eight bytes.
  struct Entry {
    uint64_t head = 0;
    uint32_t word = 0;
  };
  bool begins(std::string_view text, size_t at, const Entry& entry, uint64_t head) const;

  std::vector<std::string> words_;
  std::array<uint8_t, size_t{1} << kBits> shift_;  // how far to go on, by the last four bytes
  std::vector<uint32_t> first_;  // by hash of the first eight bytes: where they begin in entries_
  std::vector<Entry> entries_;
};

// The places of a part of a text where a word may begin (any_begins decides), block after block.
class LiteralScan {
 public:
  LiteralScan(const Literals& literals, std::string_view text, size_t begin, size_t end);
  bool at_end() const { return from_ >= end_; }
  // What is before this place is of no interest.
  void skip_to(size_t place) { from_ = std::max(from_, std::min(place, end_)); }
  // In order. Valid until the next call.
  const std::vector<size_t>& next_block();

 private:
  static constexpr size_t kLanes = 4;
  static constexpr size_t kLane = size_t{1} << 14;
  struct Lane {
    size_t at = 0, end = 0;
    size_t count = 0;
    std::vector<uint32_t> candidates;  // from the block's begin
  };
  void step(Lane& lane) const;
  void run(Lane& lane) const;

  const Literals& literals_;
  std::string_view text_;
  size_t from_ = 0, end_ = 0;
  std::array<Lane, kLanes> lanes_;
  std::vector<size_t> places_;
};

}  // namespace cohabit::explain
