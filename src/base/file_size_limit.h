// A limit on the size of files (ulimit -f).
#pragma once

#include <csignal>

namespace cohabit {

// While it lives, what is written beyond the limit fails with EFBIG and does not end the process by
// SIGXFSZ, so that it can be said and nothing stays half-written.
class BearsFileSizeLimit {
 public:
  BearsFileSizeLimit() : before_(std::signal(SIGXFSZ, SIG_IGN)) {}
  ~BearsFileSizeLimit() {
    if (before_ != SIG_ERR) std::signal(SIGXFSZ, before_);
  }
  BearsFileSizeLimit(const BearsFileSizeLimit&) = delete;
  BearsFileSizeLimit& operator=(const BearsFileSizeLimit&) = delete;

 private:
  void (*before_)(int);
};

}  // namespace cohabit
