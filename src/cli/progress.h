// One line on stderr about work that takes longer than a second, where stderr is a terminal. No
// small library for it is in the distribution, and one line needs none.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace cohabit {

class Progress {
 public:
  explicit Progress(size_t steps);
  ~Progress();  // takes the line away
  Progress(const Progress&) = delete;

  // A step begins.
  void step(const std::string& what);

 private:
  size_t steps_;
  size_t begun_ = 0;
  bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace cohabit
