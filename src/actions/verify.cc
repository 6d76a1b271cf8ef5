// The child gets an empty directory (files of the current one would shadow modules), no input, a
// process group of its own to be ended with, and limits. It says what it does through a pipe.
#include "actions/verify.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <system_error>

#include "actions/processes.h"
#include "actions/runtime_library.h"
#include "base/descriptor.h"
#include "base/scratch.h"
#include "base/variables.h"

namespace cohabit {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

// The descriptors by which the child knows its channel, and libcohabit_crash.so its file.
constexpr int kChannel = 3, kCrashFile = 4;

// Words as exec takes them.
class Words {
 public:
  explicit Words(std::vector<std::string> words) : words_(std::move(words)) {
    for (std::string& word : words_) pointers_.push_back(word.data());
    pointers_.push_back(nullptr);
  }
  char* const* data() const { return pointers_.data(); }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;
};

// Everything that the child needs, made before fork: other threads of ours may hold locks then.
struct Child {
  Words arguments, environment;
  std::string directory;
  const VerifyLimits& limits;
  int channel = -1, crash_file = -1;
  pid_t parent = 0;
};

std::vector<std::string> arguments_of(const std::string& python,
                                      const std::vector<std::string>& imports) {
  std::vector<std::string> words = {python, "-c", kVerifyProgram, std::to_string(kChannel)};
  words.insert(words.end(), imports.begin(), imports.end());
  return words;
}

// What everything that a run starts inherits: the directory of the run, which no other has.
constexpr std::string_view kMark = "COHABIT_VERIFY_RUN";

// Ours, changed, and with the library that tells of a crash; without it a crash is a signal only.
std::vector<std::string> environment_of(const std::vector<VariableChange>& changes,
                                        bool tells_of_crashes, const std::string& mark) {
  VariableMap variables;
  for (char** entry = environ; entry && *entry; entry++) {
    const std::string_view text = *entry;
    const size_t equals = std::min(text.find('='), text.size());
    variables[std::string(text.substr(0, equals))] = text.substr(std::min(equals + 1, text.size()));
  }
  for (const VariableChange& change : changes) {
    if (change.value)
      variables[change.name] = *change.value;
    else
      variables.erase(change.name);
  }
  variables[std::string(kMark)] = mark;
  const auto library = find_runtime_library("libcohabit_crash.so", "COHABIT_CRASH_LIBRARY");
  const auto path = library ? preloadable_path(*library) : library;
  if (path && tells_of_crashes) {
    std::string& preload = variables["LD_PRELOAD"];
    preload += (preload.empty() ? "" : ":") + *path;
    variables["COHABIT_CRASH_REPORT"] = std::to_string(kCrashFile);
  }
  std::vector<std::string> lines;
  for (const auto& [name, value] : variables) lines.push_back(fmt::format("{}={}", name, value));
  return lines;
}

// Both are moved out of each other's way first.
void place_descriptors(const Child& child) {
  constexpr int kOutOfTheWay = 10;
  const int channel = ::fcntl(child.channel, F_DUPFD_CLOEXEC, kOutOfTheWay);
  const int crash_file = ::fcntl(child.crash_file, F_DUPFD_CLOEXEC, kOutOfTheWay);
  ::dup2(channel, kChannel);
  if (crash_file >= 0) ::dup2(crash_file, kCrashFile);
}

[[noreturn]] void become(const Child& child) {
  ::setpgid(0, 0);
  // With the thread that waits for it.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::getppid() != child.parent) ::_exit(127);
  place_descriptors(child);
  const int nothing = ::open("/dev/null", O_RDWR);
  for (int descriptor = 0; descriptor < 3; descriptor++) ::dup2(nothing, descriptor);
  if (child.limits.megabytes > 0) {
    const rlim_t bytes = static_cast<rlim_t>(child.limits.megabytes) << 20;
    const struct rlimit memory = {bytes, bytes};
    ::setrlimit(RLIMIT_DATA, &memory);
  }
  const struct rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  if (::chdir(child.directory.c_str()) == 0)
    ::execve(child.arguments.data()[0], child.arguments.data(), child.environment.data());
  ::_exit(127);
}

std::string text_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<uint64_t> bytes_at(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_unsigned()) return {};
  return found->get<uint64_t>();
}

VerifiedDevice device_of(const Json& json) {
  VerifiedDevice device;
  device.framework = text_at(json, "framework");
  device.device = text_at(json, "device");
  device.name = text_at(json, "name");
  device.compute_capability = text_at(json, "compute_capability");
  device.total = bytes_at(json, "total");
  device.allocated = bytes_at(json, "allocated");
  device.cached = bytes_at(json, "cached");
  return device;
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
    take_told(line, told_);
  }

  std::string rest_, step_ = "start", ending_, said_;
  VerifiedRun told_;
};

void Account::conclude(int status, bool timed_out, VerifiedRun& run) const {
  const double seconds = run.seconds;
  run = told_;
  run.seconds = seconds;
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
    if (ending_ == "exception") run.exception = said_;
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

// What the run has started in sessions of its own, which no group reaches. What is started while we
// look is found by the next look.
void end_marked(const std::string& mark) {
  constexpr int kMostLooks = 5;
  const std::string entry = fmt::format("{}={}", kMark, mark) + '\0';
  for (int look = 0; look < kMostLooks; look++) {
    const std::vector<pid_t> left = find_processes(entry);
    if (left.empty()) return;
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    ::usleep(2000);
  }
}

std::string read_whole(int file) {
  constexpr size_t kMost = size_t{16} << 20;
  std::string text;
  char part[1 << 14];
  while (text.size() < kMost) {
    const ssize_t count = ::pread(file, part, sizeof part, static_cast<off_t>(text.size()));
    if (count <= 0) break;
    text.append(part, static_cast<size_t>(count));
  }
  return text;
}

}  // namespace

void take_told(const std::string& line, VerifiedRun& run) {
  const size_t space = std::min(line.find(' '), line.size());
  const std::string kind = line.substr(0, space);
  const std::string text = line.substr(std::min(space + 1, line.size()));
  const size_t gap = std::min(text.find(' '), text.size());
  const std::pair<std::string, std::string> pair = {text.substr(0, gap),
                                                    text.substr(std::min(gap + 1, text.size()))};
  if (kind == "version") {
    run.versions.push_back(pair);
  } else if (kind == "metadata") {
    run.other_metadata.push_back(pair);
  } else if (kind == "raised") {
    run.raised_in.push_back(text);
  } else if (kind == "note") {
    run.notes.push_back(text);
  } else if (kind == "device" || kind == "library") {
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object()) return;
    if (kind == "device")
      run.devices.push_back(device_of(json));
    else
      run.libraries.emplace_back(text_at(json, "path"), text_at(json, "version"));
  } else {
    return;
  }
  run.told.push_back(line);
}

std::string_view outcome_name(Outcome outcome) {
  static constexpr std::string_view kNames[] = {"ok", "exception", "signal", "hang",
                                                "wrong-result"};
  return kNames[static_cast<size_t>(outcome)];
}

Result<VerifiedRun> verify_imports(const std::string& python,
                                   const std::vector<std::string>& imports,
                                   const std::vector<VariableChange>& changes,
                                   const VerifyLimits& limits) {
  const ScratchDirectory directory("cohabit-verify");
  if (directory.path().empty()) return fail("cannot make an empty directory in /tmp");
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return fail(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  const Descriptor reading(ends[0]);
  Descriptor writing(ends[1]);
  const Descriptor crash_file(::memfd_create("cohabit-crash", MFD_CLOEXEC));
  const Child child{Words(arguments_of(python, imports)),
                    Words(environment_of(changes, crash_file.is_open(), directory.path())),
                    directory.path(),
                    limits,
                    writing.get(),
                    crash_file.get(),
                    ::getpid()};

  const auto begin = Clock::now();
  const auto end = begin + std::chrono::milliseconds(static_cast<int64_t>(limits.seconds * 1000));
  const pid_t pid = ::fork();
  if (pid == 0) become(child);
  if (pid < 0) return fail(fmt::format("cannot start a process: {}", std::strerror(errno)));
  ::setpgid(pid, pid);  // whoever is first
  directory.belongs_to(pid);
  writing.close();
  Account account;
  int status = 0;
  const bool in_time = listen(reading.get(), end, account) && wait_for(pid, end, status);
  ::kill(-pid, SIGKILL);  // it, where it hangs, and what it has left behind
  directory.belongs_to(0);
  end_marked(directory.path());
  if (!in_time) ::waitpid(pid, &status, 0);
  VerifiedRun run;
  run.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  account.conclude(status, !in_time, run);
  if (run.outcome == Outcome::kSignal)
    run.frames = read_crash_report(read_whole(crash_file.get()), pid, WTERMSIG(status));
  return run;
}

}  // namespace cohabit
