// A mapped file that another process truncates raises SIGBUS on the next read of a lost page. The
// handler below puts zero pages there and marks the mapping, so that the report is still made: the
// only async-signal-safe repair there is. SIGBUS from anywhere else goes to whoever had it before.
#include "base/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>

#include <atomic>
#include <cerrno>
#include <mutex>

namespace cohabit {
namespace {

constexpr int kMaxMappings = 1 << 16;

struct Slot {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
  std::atomic<bool> damaged{false};
};
Slot slots[kMaxMappings];
std::atomic<int> used_slots{0};
std::mutex slot_mutex;
struct sigaction previous_action;

void on_sigbus(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const int count = used_slots.load(std::memory_order_acquire);
  for (int i = 0; i < count; i++) {
    const uintptr_t begin = slots[i].begin.load(std::memory_order_acquire);
    const uintptr_t end = slots[i].end.load(std::memory_order_acquire);
    if (begin == 0 || address < begin || address >= end) continue;
    const uintptr_t page = address & ~uintptr_t{4095};
    slots[i].damaged.store(true, std::memory_order_release);
    void* mapped = mmap(reinterpret_cast<void*>(page), ((end - page) + 4095) & ~uintptr_t{4095},
                        PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (mapped != MAP_FAILED) return;
  }
  if (previous_action.sa_flags & SA_SIGINFO) {
    previous_action.sa_sigaction(signal, info, context);
  } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
    previous_action.sa_handler(signal);
  } else {
    std::signal(SIGBUS, SIG_DFL);
  }
}

void install_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action{};
    action.sa_sigaction = on_sigbus;
    action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &previous_action);
  });
}

// -1 when all slots are taken: the mapping then works, but a shrinking file kills the process.
int take_slot(void* data, uint64_t size) {
  std::lock_guard lock(slot_mutex);
  const int count = used_slots.load();
  int slot = 0;
  while (slot < count && slots[slot].begin.load() != 0) slot++;
  if (slot == kMaxMappings) return -1;
  slots[slot].damaged.store(false);
  slots[slot].end.store(reinterpret_cast<uintptr_t>(data) + size);
  slots[slot].begin.store(reinterpret_cast<uintptr_t>(data));
  if (slot == count) used_slots.store(count + 1, std::memory_order_release);
  return slot;
}

}  // namespace

Result<MappedFile> MappedFile::map(int fd, const std::string& name) {
  struct stat status{};
  if (fstat(fd, &status) != 0) return fail("cannot stat " + name + ": " + std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return fail(name + " is not a regular file");
  MappedFile file;
  if (status.st_size == 0) return file;
  file.size_ = static_cast<uint64_t>(status.st_size);
  void* data = mmap(nullptr, file.size_, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) {
    file.size_ = 0;
    return fail("cannot map " + name + ": " + std::strerror(errno));
  }
  file.data_ = data;
  install_handler();
  file.slot_ = take_slot(data, file.size_);
  return file;
}

MappedFile::~MappedFile() {
  if (slot_ >= 0) slots[slot_].begin.store(0, std::memory_order_release);
  if (data_) munmap(data_, size_);
}

void MappedFile::populate(Bytes part) {
#ifdef MADV_POPULATE_READ
  constexpr uintptr_t kPage = 4096, kWorthIt = 1 << 20;
  if (part.size() < kWorthIt) return;
  const auto begin = reinterpret_cast<uintptr_t>(part.text().data());
  const uintptr_t end = (begin + part.size()) & ~(kPage - 1),
                  start = (begin + kPage - 1) & ~(kPage - 1);
  (void)::madvise(reinterpret_cast<void*>(start), end - start, MADV_POPULATE_READ);
#else
  (void)part;
#endif
}

bool MappedFile::damaged() const {
  return slot_ >= 0 && slots[slot_].damaged.load();
}

}  // namespace cohabit
