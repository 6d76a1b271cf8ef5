#include "actions/processes.h"

#include <charconv>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

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

}  // namespace

std::vector<pid_t> find_processes(std::string_view variable) {
  std::vector<pid_t> found;
  const std::string wanted = '\0' + std::string(variable);
  std::error_code error;
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    pid_t pid = 0;
    const auto [last, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad != std::errc() || last != name.data() + name.size()) continue;
    if (('\0' + environment_of(at->path())).find(wanted) != std::string::npos) found.push_back(pid);
  }
  return found;
}

}  // namespace cohabit
