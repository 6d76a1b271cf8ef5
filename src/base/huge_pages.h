// Pages of 2 MiB.
//
// A hundred megabytes then take fifty page faults instead of 27,000, and far fewer TLB misses (a
// fifth of a replay's time on the environment `newest`). Where the kernel refuses, the memory is
// ordinary.
//
// They can be dear, where they are cheap otherwise: the kernel may have to move other pages out of
// the way, and the host of a virtual machine that was given back free memory has to bring it again
// (256 MiB: 26 ms, and 660 to 860 ms where the host does; ordinary pages 110 ms, which come out of
// what was in use a moment ago). So their time is taken, and none are asked for where it does not
// pay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

namespace cohabit {

constexpr size_t kHugePage = size_t{2} << 20;

// Makes memory be there at once: a huge page, or ordinary ones. `page`: kHugePage bytes at a
// multiple of that.
void fill_huge_page(void* page);
// The same for the first of these pages; the others are asked for, and come when they are used.
void ask_for_huge_pages(void* memory, size_t size);

// An allocator for arrays of many megabytes that are read and written at random.
template <class T>
struct HugePageAllocator {
  using value_type = T;
  HugePageAllocator() = default;
  template <class U>
  HugePageAllocator(const HugePageAllocator<U>&) {}  // NOLINT(google-explicit-constructor)

  T* allocate(size_t count) {
    if (count > (SIZE_MAX - kHugePage) / sizeof(T)) throw std::bad_alloc();
    const size_t size = count * sizeof(T);
    const size_t rounded = (size + kHugePage - 1) / kHugePage * kHugePage;
    const bool large = size >= kHugePage;
    void* memory = large ? std::aligned_alloc(kHugePage, rounded) : std::malloc(size);
    if (!memory) throw std::bad_alloc();
    if (large) ask_for_huge_pages(memory, rounded);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t) { std::free(memory); }
  template <class U>
  bool operator==(const HugePageAllocator<U>&) const {
    return true;
  }
};

template <class T>
using HugeVector = std::vector<T, HugePageAllocator<T>>;

}  // namespace cohabit
