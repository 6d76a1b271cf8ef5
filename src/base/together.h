// The same work on 0 to count - 1, on the machine's processors at the same time.
#pragma once

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>
#include <vector>

namespace cohabit {

// Of the machine; 1 where it does not tell.
inline size_t processors() {
  return std::max(std::thread::hardware_concurrency(), 1U);
}

// Where no thread can be started, the caller's does everything.
template <class Work>
void together(size_t count, Work work) {
  constexpr size_t kMostThreads = 8;
  std::atomic<size_t> next{0};
  const auto run = [&] {
    for (size_t i = 0; (i = next++) < count;) work(i);
  };
  const size_t most = std::min({count, processors(), kMostThreads});
  std::vector<std::future<void>> others;
  while (others.size() + 1 < most)
    others.push_back(std::async(std::launch::async | std::launch::deferred, run));
  run();
  for (std::future<void>& other : others) other.get();
}

}  // namespace cohabit
