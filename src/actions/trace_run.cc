// Starting the traced process. What stands between fork and exec calls only what is safe in the
// child of a process with threads.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "actions/signal_forwarder.h"
#include "actions/trace_launch.h"

namespace cohabit {
namespace {

// ld.so opens its log at the lowest free descriptor, and keeps the number for the life of the
// process: a program that closes it and opens something else there would find ld.so's lines in its
// file. So all low numbers are taken while ld.so starts; the tracer's constructor frees them.
void fill_low_descriptors(const char* filler, int high) {
  int low = ::open(filler, O_PATH | O_CLOEXEC);
  int source = ::fcntl(low, F_DUPFD_CLOEXEC, high);
  if (source < 0) return;
  ::close(low);
  for (int i = 0; i < high; ++i) {
    int flags = ::fcntl(i, F_GETFD);
    if (flags < 0 || (flags & FD_CLOEXEC)) ::dup2(source, i);
  }
}

[[noreturn]] void become_command(const Launch& launch, const RecordOptions& options, char** argv,
                                 char** envp, int failure, const sigset_t& signals) {
  auto give_up = [&] {
    int error = errno;
    (void)!::write(failure, &error, sizeof error);
    ::_exit(125);
  };
  if (options.standard_output >= 0) ::dup2(options.standard_output, 1);
  if (options.standard_error >= 0) ::dup2(options.standard_error, 2);
  if (!launch.working_directory.empty() && ::chdir(launch.working_directory.c_str()) != 0) {
    give_up();
  }
  int high = ::fcntl(failure, F_DUPFD_CLOEXEC, launch.high_descriptor);
  if (high >= 0) {
    ::close(failure);
    failure = high;
    if (launch.takes_loader_log) {
      fill_low_descriptors(launch.filler.c_str(), launch.high_descriptor);
    }
  }
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  ::execve(launch.program.command.c_str(), argv, envp);
  give_up();
  ::_exit(125);
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> list;
  list.reserve(strings.size() + 1);
  for (const auto& s : strings) list.push_back(const_cast<char*>(s.c_str()));
  list.push_back(nullptr);
  return list;
}

}  // namespace

Result<Finished> run_launch(const Launch& launch, const RecordOptions& options) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail("cannot make a pipe");
  auto argv = pointers(launch.arguments), envp = pointers(launch.environment);
  // No signal may come between fork and the moment when we know where to send it.
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  SignalForwarder forwarder(options.forward_signals);
  pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[0]);
    become_command(launch, options, argv.data(), envp.data(), ends[1], before);
  }
  int fork_error = errno;
  SignalForwarder::set_target(pid);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  ::close(ends[1]);
  if (pid < 0) {
    ::close(ends[0]);
    return fail(fmt::format("cannot start a process: {}", std::strerror(fork_error)));
  }
  int error = 0;
  ssize_t got;
  do got = ::read(ends[0], &error, sizeof error);
  while (got < 0 && errno == EINTR);
  ::close(ends[0]);
  Finished finished;
  finished.pid = pid;
  while (::waitpid(pid, &finished.status, 0) < 0 && errno == EINTR) {
  }
  if (got > 0) {
    return fail(fmt::format("cannot run {}: {}", launch.program.command, std::strerror(error)));
  }
  return finished;
}

}  // namespace cohabit
