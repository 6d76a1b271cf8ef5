// Which members of objects the functions of a library reach, read from its machine code.
//
// Two copies of a library that work on one object go well together as long as both lay it out
// alike. No header is there to tell, but the code is: `mov 0x38(%rdi),%rax` reads the member at
// 0x38. Nearly all functions of zlib 1.2.13 reach the members that those of 1.2.11 reach
// (paddle 3.0.0), and a fifth those of 1.2.8 (paddle 2.6.2), where one was added at the front
// (bench/layouts). Builds of one version by two compilers overlap as little as two versions may:
// what is not alike here need not differ. And what was not seen to its end is not alike.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "world/images.h"

namespace cohabit {

// What one function does.
struct MembersReached {
  std::vector<int32_t> offsets;       // from an object's start, rising
  std::vector<int32_t> with_helpers;  // of what it calls that is not exported, too
  bool keeps_state = false;           // it touches what its library keeps for all its callers
  bool is_whole = false;              // all of it was looked at, and of what it calls directly
};

// How the functions of two copies compare. Those with few members do not count among the rest, but
// a member that has moved shows in them best.
struct LayoutComparison {
  struct Share {
    uint32_t compared = 0;
    uint32_t alike = 0;
    bool is_at_least(double part) const { return alike >= part * compared; }
  };
  Share itself, with_helpers;          // reach several members: most of them are the same
  Share small;                         // reach a few: all of them are the same
  int32_t reach = 0, other_reach = 0;  // the last member that any reaches
  bool keeps_state = false;            // one of the functions does
  bool is_whole = true;                // all of them are

  // Enough of them were seen, and nearly all do the same; what they share is in the objects.
  bool is_same() const;
  bool is_known() const { return itself.compared >= kFewest; }
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
