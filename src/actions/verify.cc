// The child gets an empty directory (files of the current one would shadow modules), no input, a
// process group of its own to be ended with, and limits. It says what it does through a pipe.
#include "actions/verify.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace cohabit {
namespace {

using Clock = std::chrono::steady_clock;

class ScratchDirectory {
 public:
  ScratchDirectory() {
    char name[] = "/tmp/cohabit-verify-XXXXXX";
    if (::mkdtemp(name)) path_ = name;
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Everything that the child needs, made before fork.
struct Child {
  std::vector<std::string> words;
  std::vector<char*> arguments;
  std::string directory;
  const std::vector<VariableChange>& changes;
  const VerifyLimits& limits;
  int channel = -1;
};

// The descriptor by which the child knows its channel.
constexpr int kChannel = 3;

[[noreturn]] void become(const Child& child) {
  ::setpgid(0, 0);
  const int nothing = ::open("/dev/null", O_RDWR);
  for (int descriptor = 0; descriptor < 3; descriptor++) ::dup2(nothing, descriptor);
  if (child.channel == kChannel) {
    ::fcntl(kChannel, F_SETFD, 0);
  } else {
    ::dup2(child.channel, kChannel);
  }
  if (child.limits.megabytes > 0) {
    const rlim_t bytes = static_cast<rlim_t>(child.limits.megabytes) << 20;
    const struct rlimit memory = {bytes, bytes};
    ::setrlimit(RLIMIT_DATA, &memory);
  }
  const struct rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  for (const VariableChange& variable : child.changes) {
    if (variable.value)
      ::setenv(variable.name.c_str(), variable.value->c_str(), 1);
    else
      ::unsetenv(variable.name.c_str());
  }
  if (::chdir(child.directory.c_str()) == 0) ::execv(child.arguments[0], child.arguments.data());
  ::_exit(127);
}

// What the child has told so far.
class Account {
 public:
  void read(const char* data, size_t size) {
    rest_.append(data, size);
    for (size_t end = 0; (end = rest_.find('\n')) != std::string::npos;) {
      take(rest_.substr(0, end));
      rest_.erase(0, end + 1);
    }
    constexpr size_t kLongestLine = 1 << 16;
    if (rest_.size() > kLongestLine) rest_.clear();
  }
  void conclude(int status, bool timed_out, VerifiedRun& run) const;

 private:
  void take(const std::string& line) {
    const size_t space = std::min(line.find(' '), line.size());
    const std::string kind = line.substr(0, space);
    const std::string text = line.substr(std::min(space + 1, line.size()));
    if (kind == "step") step_ = text;
    if (kind == "wrong" || kind == "exception" || kind == "done") ending_ = kind;
    if (kind == "wrong" || kind == "exception") said_ = text;
    if (kind == "version") {
      const size_t gap = std::min(text.find(' '), text.size());
      versions_.emplace_back(text.substr(0, gap), text.substr(std::min(gap + 1, text.size())));
    }
  }

  std::string rest_, step_ = "start", ending_, said_;
  std::vector<std::pair<std::string, std::string>> versions_;
};

void Account::conclude(int status, bool timed_out, VerifiedRun& run) const {
  run.versions = versions_;
  if (timed_out) {
    run.outcome = Outcome::kHang;
    run.detail = fmt::format("still at \"{}\" when its time was over", step_);
  } else if (WIFSIGNALED(status)) {
    run.outcome = Outcome::kSignal;
    run.detail = fmt::format("signal {} ({}) at \"{}\"", WTERMSIG(status),
                             strsignal(WTERMSIG(status)), step_);
  } else if (ending_ == "wrong") {
    run.outcome = Outcome::kWrongResult;
    run.detail = fmt::format("{}, at \"{}\"", said_, step_);
  } else if (ending_ != "done" || WEXITSTATUS(status) != 0) {
    run.outcome = Outcome::kException;
    run.detail = ending_ == "exception"
                     ? fmt::format("{}, at \"{}\"", said_, step_)
                     : fmt::format("exit code {} at \"{}\"", WEXITSTATUS(status), step_);
  }
}

// Reads until the child closes the channel or its time is over. True: in time.
bool listen(int channel, Clock::time_point end, Account& account) {
  char buffer[4096];
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return false;
    struct pollfd waiting = {channel, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left.count(), 1000)));
    if (ready < 0 && errno != EINTR) return true;
    if (ready <= 0) continue;
    const ssize_t count = ::read(channel, buffer, sizeof buffer);
    if (count <= 0) return true;
    account.read(buffer, static_cast<size_t>(count));
  }
}

// Waits for the end, but not longer than allowed. Nothing: its time was over.
bool wait_for(pid_t pid, Clock::time_point end, int& status) {
  while (::waitpid(pid, &status, WNOHANG) == 0) {
    if (Clock::now() >= end) return false;
    ::usleep(2000);
  }
  return true;
}

}  // namespace

std::string_view outcome_name(Outcome outcome) {
  static constexpr std::string_view kNames[] = {"ok", "exception", "signal", "hang",
                                                "wrong-result"};
  return kNames[static_cast<size_t>(outcome)];
}

Result<VerifiedRun> verify_imports(const std::string& python,
                                   const std::vector<std::string>& imports,
                                   const std::vector<VariableChange>& changes,
                                   const VerifyLimits& limits) {
  const ScratchDirectory directory;
  if (directory.path().empty()) return fail("cannot make an empty directory in /tmp");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return fail(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  Child child{{python, "-c", kVerifyProgram, std::to_string(kChannel)},
              {},
              directory.path(),
              changes,
              limits,
              ends[1]};
  child.words.insert(child.words.end(), imports.begin(), imports.end());
  for (std::string& word : child.words) child.arguments.push_back(word.data());
  child.arguments.push_back(nullptr);

  const auto begin = Clock::now();
  const auto end = begin + std::chrono::milliseconds(static_cast<int64_t>(limits.seconds * 1000));
  const pid_t pid = ::fork();
  if (pid == 0) become(child);
  ::close(ends[1]);
  if (pid < 0) {
    ::close(ends[0]);
    return fail(fmt::format("cannot start a process: {}", std::strerror(errno)));
  }
  Account account;
  int status = 0;
  const bool in_time = listen(ends[0], end, account) && wait_for(pid, end, status);
  ::kill(-pid, SIGKILL);  // it, where it hangs, and what it has left behind
  if (!in_time) ::waitpid(pid, &status, 0);
  ::close(ends[0]);
  VerifiedRun run;
  run.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  account.conclude(status, !in_time, run);
  return run;
}

}  // namespace cohabit
