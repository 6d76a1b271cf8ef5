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

 private:
  static constexpr size_t kNames = size_t{1} << 14;
  bool is_named(std::string_view number) const;

  std::bitset<kNames> names_;  // by hash; to take a number for one that is named does no harm
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
