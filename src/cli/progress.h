// One line on stderr about work that takes longer than a second, where stderr is a terminal. No
// small library for it is in the distribution, and one line needs none.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>

namespace cohabit {

class Progress {
 public:
  Progress();
  ~Progress();  // takes the line away
  Progress(const Progress&) = delete;

  // So many more steps are to come.
  void expect(size_t steps);
  // A step begins.
  void step(const std::string& what);

 private:
  void draw_when_due();
  std::string line() const;

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  size_t steps_ = 0;
  size_t begun_ = 0;
  std::string what_;
  bool is_new_ = false, is_over_ = false;
  std::thread drawing_;  // where there is a terminal
};

}  // namespace cohabit
