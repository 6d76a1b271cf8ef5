// Finding any of some hundred literals in a text of any size, in one pass that skips most bytes.
#pragma once

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
  // Adds the indexes of the words that begin at `at`.
  void words_at(std::string_view text, size_t at, std::vector<int>& words) const;

 private:
  static constexpr unsigned kBits = 15;
  bool begins(std::string_view text, size_t at, uint32_t word) const;

  std::vector<std::string> words_;
  std::array<uint8_t, size_t{1} << kBits> shift_;  // how far to go on, by the last three bytes
  std::vector<uint32_t> first_;                    // by hash: where its words begin in order_
  std::vector<uint32_t> order_;
};

}  // namespace cohabit::explain
