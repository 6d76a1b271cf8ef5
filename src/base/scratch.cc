#include "base/scratch.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#include <system_error>

#include "base/directory_entries.h"
#include "base/working_in.h"

namespace cohabit {
namespace {

// Those that end a process from outside.
constexpr int kSignals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGPIPE, SIGQUIT,
                            SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU};

void remove_at(int directory, const char* name);

void remove_entries(int directory) {
  for_each_name(directory, [&](const char* name) { remove_at(directory, name); });
}

void remove_at(int directory, const char* name) {
  if (::unlinkat(directory, name, 0) == 0) return;
  const int below = ::openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (below < 0) return;
  remove_entries(below);
  ::close(below);
  (void)::unlinkat(directory, name, AT_REMOVEDIR);
}

struct Slot {
  std::atomic<bool> used{false};
  std::atomic<pid_t> group{0};
  std::array<char, PATH_MAX> path{};
};
std::array<Slot, 16> slots;
std::mutex slot_mutex;

void on_signal(int signal) {
  for (Slot& slot : slots) {
    if (!slot.used.load()) continue;
    if (const pid_t group = slot.group.load(); group > 1) ::kill(-group, SIGKILL);
    end_work_in(slot.path.data());
    remove_tree(slot.path.data());
  }
  // Blocked until the handler returns: then it ends the process.
  (void)std::signal(signal, SIG_DFL);
  (void)::raise(signal);
}

void install_handlers() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (const int number : kSignals) {
      struct sigaction before{}, action{};
      action.sa_handler = on_signal;
      sigemptyset(&action.sa_mask);
      for (const int other : kSignals) sigaddset(&action.sa_mask, other);
      if (::sigaction(number, nullptr, &before) == 0 && before.sa_handler == SIG_DFL)
        (void)::sigaction(number, &action, nullptr);
    }
  });
}

std::string temporary_directory() {
  const char* set = std::getenv("TMPDIR");
  return set && *set == '/' ? set : "/tmp";
}

// A lock of the directory; -1: another process has it, or it is not ours, or it is gone meanwhile.
int lock_directory(const std::string& path) {
  const int directory =
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  struct stat locked{}, named{};
  if (directory >= 0 && ::fstat(directory, &locked) == 0 && locked.st_uid == ::geteuid() &&
      ::flock(directory, LOCK_EX | LOCK_NB) == 0 && ::lstat(path.c_str(), &named) == 0 &&
      named.st_dev == locked.st_dev && named.st_ino == locked.st_ino)
    return directory;
  if (directory >= 0) ::close(directory);
  return -1;
}

std::string resolved(const std::string& path) {
  char real[PATH_MAX];
  return ::realpath(path.c_str(), real) ? real : path;
}

// mkdtemp's six letters.
constexpr size_t kRandom = 6;

// One look of a process at a place is enough.
void remove_abandoned(const std::string& name, const std::string& parent) {
  static std::mutex mutex;
  static std::set<std::string> seen;
  const std::lock_guard lock(mutex);
  const std::string begin = name + ".";  // with "-" they were not locked once
  if (!seen.insert(parent + "/" + begin).second) return;
  std::error_code error;
  for (std::filesystem::directory_iterator at(parent, error), end; !error && at != end;
       at.increment(error)) {
    const std::string one = at->path().filename().string();
    if (one.size() != begin.size() + kRandom || !one.starts_with(begin)) continue;
    const int locked = lock_directory(at->path().string());
    if (locked < 0) continue;
    // An installer may outlive who has started it; then it goes with the next one.
    if (!is_worked_in(resolved(at->path().string()).c_str())) remove_tree(at->path().c_str());
    ::close(locked);
  }
}

}  // namespace

void remove_tree(const char* path) {
  remove_at(AT_FDCWD, path);
}

ScratchDirectory::ScratchDirectory(const std::string& name)
    : ScratchDirectory(name, temporary_directory()) {}

ScratchDirectory::ScratchDirectory(const std::string& name, const std::string& parent) {
  remove_abandoned(name, parent);
  make(name, parent);
  remember();
}

void ScratchDirectory::make(const std::string& name, const std::string& parent) {
  constexpr int kMostTries = 5;  // another process takes it for abandoned before it is locked
  for (int i = 0; i < kMostTries && lock_ < 0; i++) {
    std::string path = parent;
    path.append("/").append(name).append(".XXXXXX");
    if (!::mkdtemp(path.data())) return;
    lock_ = lock_directory(path);
    if (lock_ >= 0) path_ = resolved(path);
  }
}

void ScratchDirectory::remember() {
  if (path_.empty()) return;
  const std::lock_guard lock(slot_mutex);
  for (size_t i = 0; i < slots.size() && slot_ < 0; i++) {
    if (slots[i].used.load()) continue;
    std::memcpy(slots[i].path.data(), path_.c_str(), path_.size() + 1);
    slots[i].used.store(true);
    slot_ = static_cast<int>(i);
  }
  install_handlers();
}

ScratchDirectory::~ScratchDirectory() {
  if (path_.empty()) return;
  remove_tree(path_.c_str());
  ::close(lock_);
  belongs_to(0);
  if (slot_ >= 0) slots[static_cast<size_t>(slot_)].used.store(false);
}

void ScratchDirectory::belongs_to(int group) const {
  if (slot_ >= 0) slots[static_cast<size_t>(slot_)].group.store(group);
}

}  // namespace cohabit
