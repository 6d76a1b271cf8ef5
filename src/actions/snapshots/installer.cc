#include "actions/snapshots/installer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "actions/launch.h"
#include "actions/signal_forwarder.h"

namespace cohabit {
namespace {

constexpr int kCannotExecute = 126;

[[noreturn]] void become(const std::string& path, const std::vector<std::string>& command, int lock,
                         const sigset_t& signals) {
  ::fcntl(lock, F_SETFD, 0);
  ::signal(SIGXFSZ, SIG_DFL);
  ::signal(SIGPIPE, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  const Error error = execute(path, command, {});
  (void)!::write(STDERR_FILENO, error.message.data(), error.message.size());
  (void)!::write(STDERR_FILENO, "\n", 1);
  ::_exit(kCannotExecute);
}

}  // namespace

Result<int> run_installer(const std::string& path, const std::vector<std::string>& command,
                          int lock) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  const SignalForwarder forwarder(true);
  const pid_t pid = ::fork();
  if (pid == 0) become(path, command, lock, before);
  const int error = errno;
  SignalForwarder::set_target(pid);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return fail(fmt::format("cannot start a process: {}", std::strerror(error)));
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace cohabit
