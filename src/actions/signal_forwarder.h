// While a command runs for us.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstddef>
#include <iterator>

namespace cohabit {

// Signals that a process sends us are meant for the command. Those from the terminal reach it
// without our help; both must not end us before it.
class SignalForwarder {
 public:
  explicit SignalForwarder(bool active) {
    if (!active) return;
    struct sigaction action{};
    action.sa_sigaction = forward;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], nullptr, &old_[i]);
    for (size_t i = 0; i < std::size(kSignals); ++i) {
      if (old_[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);
    }
    active_ = true;
  }
  ~SignalForwarder() {
    for (size_t i = 0; active_ && i < std::size(kSignals); ++i) {
      ::sigaction(kSignals[i], &old_[i], nullptr);
    }
    target_ = 0;
  }
  SignalForwarder(const SignalForwarder&) = delete;
  SignalForwarder& operator=(const SignalForwarder&) = delete;
  static void set_target(pid_t target) { target_ = target; }

 private:
  static void forward(int signal, siginfo_t* info, void*) {
    if (target_ > 0 && info->si_code <= 0) ::kill(target_, signal);
  }
  static constexpr int kSignals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
  static inline volatile pid_t target_ = 0;
  struct sigaction old_[std::size(kSignals)]{};
  bool active_ = false;
};

}  // namespace cohabit
