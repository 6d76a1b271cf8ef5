#include "base/huge_pages.h"

#include <atomic>
#include <cstdint>
#include <ctime>

#include "base/clock.h"
#include "base/pages.h"

namespace cohabit {
namespace {

// What 512 ordinary pages take, and what may be lost before it is seen that huge ones take longer.
constexpr int64_t kOrdinary = 800'000, kMayBeLost = 2'000'000;  // nanoseconds

std::atomic<int64_t> lost = 0;  // by all huge pages so far, against ordinary ones

bool are_cheap() {
  return lost < kMayBeLost;
}

// Of this thread alone.
int64_t used_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return nanoseconds(time);
}

void fill(void* memory, size_t size) {
#ifdef MADV_POPULATE_WRITE
  advise_pages(memory, size, MADV_POPULATE_WRITE);
#else
  (void)memory, (void)size;
#endif
}

}  // namespace

void fill_huge_page(void* page) {
  if (!are_cheap()) return fill(page, kHugePage);
  const int64_t begin = used_time();
  advise_pages(page, kHugePage, MADV_HUGEPAGE);
  fill(page, kHugePage);
  lost += used_time() - begin - kOrdinary;
}

void ask_for_huge_pages(void* memory, size_t size) {
  if (!are_cheap()) return;
  fill_huge_page(memory);
  if (are_cheap()) advise_pages(memory, size, MADV_HUGEPAGE);
}

}  // namespace cohabit
