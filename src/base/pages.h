// What the kernel is told of whole pages.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace cohabit {

// madvise(2) of the pages that lie wholly in these bytes. A hint: what the kernel does not know
// (MADV_POPULATE_*: before 5.14) changes nothing.
inline void advise_pages(const void* data, size_t size, int advice) {
  constexpr uintptr_t kPage = 4096;
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first = (begin + kPage - 1) & ~(kPage - 1), end = (begin + size) & ~(kPage - 1);
  if (first < end) (void)::madvise(reinterpret_cast<void*>(first), end - first, advice);
}

}  // namespace cohabit
