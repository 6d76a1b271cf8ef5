#include "actions/ask.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "base/descriptor.h"

namespace cohabit {
namespace {

constexpr size_t kLongestAnswer = 1 << 20;

constexpr off_t kMostHeard = off_t{256} << 20;

std::vector<char*> words_of(const std::vector<std::string>& command) {
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  return words;
}

// A file without a name, in memory: it takes what is written without anybody reading meanwhile.
struct Scratch {
  const Descriptor file{::memfd_create("cohabit", MFD_CLOEXEC)};
  bool put(const std::string& text) const {
    return write_all(file.get(), text) && ::lseek(file.get(), 0, SEEK_SET) == 0;
  }
  std::string text() const {
    const off_t size = ::lseek(file.get(), 0, SEEK_END);
    std::string result(size > 0 && size <= kMostHeard ? static_cast<size_t>(size) : 0, '\0');
    const ssize_t count = ::pread(file.get(), result.data(), result.size(), 0);
    result.resize(count > 0 ? static_cast<size_t>(count) : 0);
    return result;
  }
  bool is_too_long() const { return ::lseek(file.get(), 0, SEEK_END) > kMostHeard; }
};

// Until its end, or until the patience is used up.
std::string read_answer(int from, int patience) {
  std::string text;
  char part[256];
  pollfd wait{from, POLLIN, 0};
  while (text.size() < kLongestAnswer && ::poll(&wait, 1, patience) > 0) {
    const ssize_t count = ::read(from, part, sizeof part);
    if (count <= 0) break;
    text.append(part, static_cast<size_t>(count));
  }
  return text;
}

// Waits for the end of a child, which is left to be collected. Where the kernel has no descriptors
// of processes (before Linux 5.3) there is no limit.
bool has_ended(pid_t child, int patience) {
  const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  if (!process.is_open()) return true;
  pollfd wait{process.get(), POLLIN, 0};
  return ::poll(&wait, 1, patience) != 0;
}

}  // namespace

std::string ask_program(const std::vector<std::string>& command, int patience) {
  std::vector<char*> words = words_of(command);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return "";
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&files, ends[1], 1);
  ::posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, words[0], &files, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::close(ends[1]);
  std::string text;
  if (!failed) {
    text = read_answer(ends[0], patience);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  ::close(ends[0]);
  return text;
}

Result<Answer> hear_program(const std::vector<std::string>& command, const std::string& input,
                            std::optional<int> patience) {
  std::vector<char*> words = words_of(command);
  const Scratch in, out, err;
  if (!in.file.is_open() || !out.file.is_open() || !err.file.is_open() || !in.put(input))
    return fail(fmt::format("no memory to run {}: {}", command[0], std::strerror(errno)));
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, in.file.get(), 0);
  ::posix_spawn_file_actions_adddup2(&files, out.file.get(), 1);
  ::posix_spawn_file_actions_adddup2(&files, err.file.get(), 2);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, words[0], &files, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  if (failed) return fail(fmt::format("cannot start {}: {}", command[0], std::strerror(failed)));
  Answer answer;
  if (patience && !has_ended(child, *patience)) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    return fail(fmt::format("{} has not ended after {} s", command[0], *patience / 1000));
  }
  while (::waitpid(child, &answer.status, 0) < 0 && errno == EINTR) continue;
  if (out.is_too_long() || err.is_too_long())
    return fail(fmt::format("{} wrote more than {} MB", command[0], kMostHeard >> 20));
  answer.output = out.text();
  answer.errors = err.text();
  return answer;
}

std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace cohabit
