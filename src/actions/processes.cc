#include "actions/processes.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "base/addresses.h"

namespace cohabit {
namespace {

namespace fs = std::filesystem;

// The environment that a process was started with. Between execve's two halves the kernel shows an
// empty one (fs/proc/base.c, environ_read: no env_end yet), also of a process that is looked for.
std::string environment_of(const fs::path& process) {
  constexpr int kMostLooks = 20;
  constexpr timespec kPause = {0, 1'000'000};
  std::string text;
  for (int look = 0; look < kMostLooks; look++) {
    if (look > 0) ::nanosleep(&kPause, nullptr);
    std::ifstream file(process / "environ", std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(file), {});
    std::error_code error;
    // Threads of the kernel and zombies have no executable, and of strangers it is not shown.
    if (!text.empty() || fs::read_symlink(process / "exe", error).empty()) break;
  }
  return text;
}

// Calls of each process with its number and its directory, in no order.
template <class Look>
void for_each_process(Look look) {
  std::error_code error;
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    pid_t pid = 0;
    const auto [last, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad == std::errc() && last == name.data() + name.size()) look(pid, at->path());
  }
}

bool has_open(const fs::path& process, const struct stat& file) {
  std::error_code error;
  for (fs::directory_iterator at(process / "fd", error), end; !error && at != end;
       at.increment(error)) {
    struct stat one{};
    if (::stat(at->path().c_str(), &one) == 0 && one.st_dev == file.st_dev &&
        one.st_ino == file.st_ino)
      return true;
  }
  return false;
}

}  // namespace

std::vector<pid_t> find_processes(std::string_view variable) {
  std::vector<pid_t> found;
  const std::string wanted = '\0' + std::string(variable);
  for_each_process([&](pid_t pid, const fs::path& process) {
    if (('\0' + environment_of(process)).find(wanted) != std::string::npos) found.push_back(pid);
  });
  return found;
}

std::vector<pid_t> find_users_of(const std::string& file) {
  std::vector<pid_t> found;
  struct stat wanted{};
  if (::stat(file.c_str(), &wanted) != 0) return found;
  for_each_process([&](pid_t pid, const fs::path& process) {
    if (pid != ::getpid() && has_open(process, wanted)) found.push_back(pid);
  });
  return found;
}

std::string describe_process(pid_t process) {
  constexpr size_t kLongest = 80;
  std::ifstream file(fmt::format("/proc/{}/cmdline", process), std::ios::binary);
  std::string command{std::istreambuf_iterator<char>(file), {}};
  while (command.ends_with('\0')) command.pop_back();
  std::replace_if(
      command.begin(), command.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  command = without_credentials(std::move(command));
  if (command.size() > kLongest) command = command.substr(0, kLongest) + "...";
  return command.empty() ? fmt::format("process {}", process)
                         : fmt::format("process {} ({})", process, command);
}

}  // namespace cohabit
