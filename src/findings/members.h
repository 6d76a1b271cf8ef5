// Which members of objects the functions of a library reach, read from its machine code.
//
// Two copies of a library that work on one object go well together as long as both lay it out
// alike. No header is there to tell, but the code is: `mov 0x38(%rdi),%rax` reads the member at
// 0x38. Of zlib 1.2.13's 31 exported functions that reach more than three members, all but none
// reach those that 1.2.11 reaches (paddle 3.0.0; the mean overlap is 0.97), and a fifth those
// of 1.2.8 (paddle 2.6.2; 0.42), where one was added at the front. Builds of one version by two
// compilers overlap as little as two versions may: what is not alike here need not differ.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "world/images.h"

namespace cohabit {

// What one function does.
struct MembersReached {
  std::vector<int32_t> offsets;       // from an object's start, rising; empty: not known
  std::vector<int32_t> with_helpers;  // of what it calls that is not exported, too
  bool keeps_state = false;           // it touches what its library keeps for all its callers
};

// How the functions of two copies compare, of those that both have and that reach several members.
struct LayoutComparison {
  uint32_t compared = 0;
  uint32_t alike = 0;
  uint32_t compared_with_helpers = 0;
  uint32_t alike_with_helpers = 0;
  bool keeps_state = false;  // one of the functions does

  // Enough of them were seen, and nearly all do the same; what they share is in the objects.
  bool is_same() const;
  bool is_known() const { return compared >= kFewest; }
  static constexpr uint32_t kFewest = 8;
};

// Of exported functions, by their symbols. x86-64 only; else, and where a symbol is no function,
// nothing is known.
std::vector<MembersReached> members_reached(const Image& image,
                                            const std::vector<uint32_t>& symbols);

// `functions`: pairs of symbols of the two images, of one name each.
LayoutComparison compare_layouts(const Image& one, const Image& other,
                                 const std::vector<std::pair<uint32_t, uint32_t>>& functions);

}  // namespace cohabit
