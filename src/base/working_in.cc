#include "base/working_in.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/types.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <cstring>

#include "base/directory_entries.h"

namespace cohabit {
namespace {

// 0: no number.
pid_t number_of(const char* name) {
  pid_t number = 0;
  for (; *name; name++) {
    if (*name < '0' || *name > '9' || number > (INT_MAX - 9) / 10) return 0;
    number = number * 10 + (*name - '0');
  }
  return number;
}

// Whether a file holds the text, in parts: a command line may have megabytes.
bool holds(int file, const char* text) {
  const size_t length = std::strlen(text);
  char part[2 * PATH_MAX];
  if (length == 0 || length > PATH_MAX) return false;
  size_t kept = 0;  // of the part before: the text may begin in it
  while (true) {
    const ssize_t count = ::read(file, part + kept, sizeof part - kept);
    if (count <= 0) return false;
    const size_t size = kept + static_cast<size_t>(count);
    if (::memmem(part, size, text, length)) return true;
    kept = size < length ? size : length - 1;
    std::memmove(part, part + size - kept, kept);
  }
}

template <class Work>
void for_each_process_in(const char* directory, Work work) {
  const int processes = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (processes < 0) return;
  const pid_t own = ::getpid();
  for_each_name(processes, [&](const char* name) {
    constexpr char kCommand[] = "/cmdline";
    constexpr size_t kLongest = 16;
    const pid_t process = number_of(name);
    if (process <= 1 || process == own || std::strlen(name) > kLongest) return;
    char path[kLongest + sizeof kCommand];
    std::strcpy(path, name);
    std::strcat(path, kCommand);
    const int file = ::openat(processes, path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    if (holds(file, directory)) work(process);
    ::close(file);
  });
  ::close(processes);
}

}  // namespace

bool is_worked_in(const char* directory) {
  bool is_there = false;
  for_each_process_in(directory, [&](pid_t) { is_there = true; });
  return is_there;
}

void end_work_in(const char* directory) {
  constexpr int kMostLooks = 50;
  constexpr int kPause = 2;  // milliseconds
  for (int i = 0; i < kMostLooks; i++) {
    bool is_there = false;
    for_each_process_in(directory, [&](pid_t process) {
      is_there = true;
      (void)::kill(process, SIGKILL);
    });
    if (!is_there) return;
    (void)::poll(nullptr, 0, kPause);
  }
}

}  // namespace cohabit
