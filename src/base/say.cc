#include "base/say.h"

#include <csignal>
#include <cstdio>
#include <ctime>

namespace cohabit {

// The signal of a write is its thread's: it is held back, and taken if it has come.
void write_message(const std::string& text) {
  sigset_t of_pipes, before, pending;
  sigemptyset(&of_pipes);
  sigaddset(&of_pipes, SIGPIPE);
  const bool is_held = ::pthread_sigmask(SIG_BLOCK, &of_pipes, &before) == 0;
  sigemptyset(&pending);
  (void)::sigpending(&pending);
  const bool was_pending = sigismember(&pending, SIGPIPE) == 1;
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
  constexpr timespec kAtOnce = {0, 0};
  if (is_held && !was_pending) (void)::sigtimedwait(&of_pipes, nullptr, &kAtOnce);
  if (is_held) (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace cohabit
