// A mapped file that another process truncates raises SIGBUS on the next read of a lost page. The
// handler below puts zero pages there and marks the mapping, so that the report is still made: the
// only async-signal-safe repair there is. A read of what a bundle does not hold raises SIGSEGV and
// is treated in the same way (touch_log.h). Signals from anywhere else go to whoever had them
// before.
#include "base/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "base/clock.h"
#include "base/known_words.h"
#include "base/pages.h"
#include "base/touch_log.h"

namespace cohabit {
namespace {

constexpr int kMaxMappings = 1 << 16;

struct Slot {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
  std::atomic<bool> damaged{false};
  std::atomic<bool> read_hole{false};
  std::atomic<uint32_t> faults{0};
  std::atomic<uint8_t*> touched{nullptr};  // a flag for each unit, if a log wants to know them
};
Slot slots[kMaxMappings];
std::atomic<int> used_slots{0};
std::mutex slot_mutex;
struct sigaction previous_bus, previous_fault;

Slot* find_slot(uintptr_t address) {
  const int count = used_slots.load(std::memory_order_acquire);
  for (int i = 0; i < count; i++) {
    const uintptr_t begin = slots[i].begin.load(std::memory_order_acquire);
    const uintptr_t end = slots[i].end.load(std::memory_order_acquire);
    if (begin != 0 && address >= begin && address < end) return &slots[i];
  }
  return nullptr;
}

void pass_on(const struct sigaction& previous, int signal, siginfo_t* info, void* context) {
  if (previous.sa_flags & SA_SIGINFO) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else {
    std::signal(signal, SIG_DFL);
  }
}

void on_sigbus(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  if (Slot* slot = find_slot(address)) {
    const uintptr_t page = address & ~uintptr_t{4095}, end = slot->end.load();
    slot->damaged.store(true, std::memory_order_release);
    void* mapped = mmap(reinterpret_cast<void*>(page), ((end - page) + 4095) & ~uintptr_t{4095},
                        PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (mapped != MAP_FAILED) return;
  }
  pass_on(previous_bus, signal, info, context);
}

// Each piece with rights of its own costs the kernel a mapping, of which a process may have 65,530:
// the more reads of a file, the larger the pieces that one read opens.
bool open_units(Slot& slot, uint8_t* touched, uintptr_t address) {
  constexpr uint32_t kFaultsPerSize = 32, kMostDoublings = 8;
  const uintptr_t begin = slot.begin.load(), end = slot.end.load();
  const uint32_t doublings = std::min(slot.faults.fetch_add(1) / kFaultsPerSize, kMostDoublings);
  const uintptr_t piece = kTouchUnit << doublings;
  const uintptr_t from = begin + (address - begin) / piece * piece;
  const size_t size = std::min(from + piece, end) - from;
  std::memset(touched + (from - begin) / kTouchUnit, 1, (size + kTouchUnit - 1) / kTouchUnit);
  if (mprotect(reinterpret_cast<void*>(from), size, PROT_READ) == 0) return true;
  // Too many pieces all the same: from now on everything counts as read.
  std::memset(touched, 1, (end - begin + kTouchUnit - 1) / kTouchUnit);
  return false;
}

// Of a machine: one more piece was read. Of a bundle the whole file becomes readable: one read in
// vain is enough to know.
void on_fault(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  if (Slot* slot = find_slot(address)) {
    if (uint8_t* touched = slot->touched.load()) {
      if (open_units(*slot, touched, address)) return;
    } else {
      slot->read_hole.store(true, std::memory_order_release);
    }
    const uintptr_t begin = slot->begin.load(), end = slot->end.load();
    if (mprotect(reinterpret_cast<void*>(begin), end - begin, PROT_READ) == 0) return;
  }
  pass_on(previous_fault, signal, info, context);
}

void install(int signal, void (*handler)(int, siginfo_t*, void*), struct sigaction& previous) {
  struct sigaction action{};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, &previous);
}

void install_handlers(bool has_guards) {
  static std::once_flag bus, fault;
  std::call_once(bus, [] { install(SIGBUS, on_sigbus, previous_bus); });
  if (has_guards) std::call_once(fault, [] { install(SIGSEGV, on_fault, previous_fault); });
}

// -1 when all slots are taken: the mapping then works, but a shrinking file kills the process.
int take_slot(void* data, uint64_t size) {
  std::lock_guard lock(slot_mutex);
  const int count = used_slots.load();
  int slot = 0;
  while (slot < count && slots[slot].begin.load() != 0) slot++;
  if (slot == kMaxMappings) return -1;
  slots[slot].damaged.store(false);
  slots[slot].read_hole.store(false);
  slots[slot].touched.store(nullptr);
  slots[slot].faults.store(0);
  slots[slot].end.store(reinterpret_cast<uintptr_t>(data) + size);
  slots[slot].begin.store(reinterpret_cast<uintptr_t>(data));
  if (slot == count) used_slots.store(count + 1, std::memory_order_release);
  return slot;
}

}  // namespace

struct MappedFile::Extracts {
  std::mutex mutex;                    // plans are made on a thread of their own
  std::map<std::string, Words> known;  // by kind
  KnownWords* all = nullptr;           // of other files too, and of other runs
  KnownWords::File file;
};

MappedFile::MappedFile() = default;

Result<MappedFile> MappedFile::map(int fd, const std::string& name, TouchLog* log,
                                   KnownWords* words) {
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
  file.extracts_ = std::make_unique<Extracts>();
  file.extracts_->all = words;
  file.extracts_->file = {status.st_dev, status.st_ino, file.size_, nanoseconds(status.st_mtim),
                          nanoseconds(status.st_ctim)};
  install_handlers(log != nullptr);
  file.slot_ = take_slot(data, file.size_);
  file.log_ = log;
  if (log) {
    uint8_t* touched =
        log->mapped(name, {status.st_dev, status.st_ino}, fd, data, file.size_, file.slot_ >= 0);
    if (file.slot_ >= 0) slots[file.slot_].touched.store(touched);
    auto same = log->is_of_bundle() ? Result<MappedFile>(MappedFile()) : map(fd, name);
    if (same && same->data_) file.unnoted_ = std::make_unique<MappedFile>(std::move(*same));
  }
  return file;
}

MappedFile::Words MappedFile::extract(const std::string& kind,
                                      const std::function<Words(Bytes)>& read) const {
  if (!extracts_) return read(bytes());
  {
    const std::lock_guard lock(extracts_->mutex);
    if (const auto at = extracts_->known.find(kind); at != extracts_->known.end())
      return at->second;
  }
  KnownWords* all = extracts_->all;
  const auto known = all ? all->find(extracts_->file, kind) : std::nullopt;
  const Words words = known ? *known : work_out(kind, read);
  if (all && !known && !damaged()) all->add(extracts_->file, kind, words);
  const std::lock_guard lock(extracts_->mutex);
  return extracts_->known.try_emplace(kind, words).first->second;
}

MappedFile::Words MappedFile::work_out(const std::string& kind,
                                       const std::function<Words(Bytes)>& read) const {
  if (!log_) return read(bytes());
  if (std::optional<Words> known = log_->extract_of(data_, kind)) return std::move(*known);
  Words words = read(unnoted_ ? unnoted_->bytes() : bytes());
  if (!log_->is_of_bundle()) log_->add_extract(data_, kind, words);
  return words;
}

bool MappedFile::answer(std::string_view kind, std::string_view text,
                        const std::function<bool(Bytes)>& read) const {
  // A bundle has no place for such a text (capture.cc).
  if (!log_ || text.find('\0') != text.npos) return read(bytes());
  std::string question(kind);
  question.append(" ").append(text);
  return !work_out(question, [&](Bytes file) {
            return read(file) ? Words{"yes"} : Words();
          }).empty();
}

MappedFile::~MappedFile() {
  if (log_ && data_) log_->unmapped(data_, size_, slot_ >= 0 && slots[slot_].read_hole.load());
  if (slot_ >= 0) slots[slot_].begin.store(0, std::memory_order_release);
  if (data_) munmap(data_, size_);
}

void MappedFile::populate(Bytes part) {
#ifdef MADV_POPULATE_READ
  constexpr size_t kWorthIt = size_t{1} << 20;
  if (part.size() >= kWorthIt) advise_pages(part.text().data(), part.size(), MADV_POPULATE_READ);
#else
  (void)part;
#endif
}

// What a bundle leaves out reads as zeros: who read of it knows as little.
bool MappedFile::damaged() const {
  return slot_ >= 0 && (slots[slot_].damaged.load() || slots[slot_].read_hole.load());
}

}  // namespace cohabit
