// Which lines of a log were there before, but for numbers and addresses. A failure that a loop of
// restarts prints ten thousand times is looked at a few times; the rest costs a look into a table.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cohabit::explain {

class Shapes {
 public:
  // Numbers that a pattern names tell lines apart: "WinError 126" is not "WinError 127".
  void name_numbers_of(std::string_view pattern);

  struct Shape {
    uint64_t all = 0;    // equal for lines that differ in any numbers
    uint64_t named = 0;  // equal for lines that differ in numbers that no pattern names
  };
  Shape of(std::string_view line) const;

  // Two lines side by side. Where they are the same, the places become those of the next lines.
  enum class Same : uint8_t { kNo, kButForNumbers, kButForNamedNumbers };
  Same compare_lines(std::string_view text, size_t& later, size_t& earlier) const;

 private:
  bool pass_numbers(std::string_view text, size_t& later, size_t& earlier, bool& named) const;
  bool tells_apart(std::string_view text, size_t begin, size_t end) const;
  static constexpr size_t kNames = size_t{1} << 14;
  void add_name(std::string_view pattern, size_t begin, size_t end);

  uint32_t lengths_ = 0;       // of names, as bits
  std::bitset<kNames> names_;  // by hash; to take a number for one that is named does no harm
};

// Where a line of this shape was last.
class Places {
 public:
  Places() : slots_(kSlots) {}
  // Puts this place there; the one before, or npos.
  size_t exchange(uint64_t shape, size_t place);

 private:
  static constexpr size_t kSlots = size_t{1} << 12;
  struct Slot {
    uint64_t shape = 0;
    size_t place = 0;
  };
  std::vector<Slot> slots_;
};

// How often a value was there before. Of fixed size: it forgets when there are too many.
class Counts {
 public:
  Counts() : slots_(kSlots) {}
  // 0 at the first time; no more than `most`.
  unsigned count(uint64_t value, unsigned most);

 private:
  static constexpr size_t kSlots = size_t{1} << 16;
  static constexpr size_t kProbes = 4;
  std::vector<uint64_t> slots_;  // the value, and in its lowest byte the count
};

}  // namespace cohabit::explain
