// What a directory holds, by system calls alone: a signal handler may ask.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cohabit {

// What getdents64(2) writes.
struct DirectoryEntry {
  uint64_t inode;
  int64_t offset;
  uint16_t length;
  uint8_t type;
  char name[1];
};

// Calls with each name but "." and ".."; of a directory that is changed meanwhile, some twice or
// not at all.
template <class Work>
void for_each_name(int directory, Work work) {
  constexpr size_t kBuffer = 4096;
  alignas(DirectoryEntry) char buffer[kBuffer];
  while (true) {
    const long count = ::syscall(SYS_getdents64, directory, buffer, sizeof buffer);
    if (count <= 0) return;
    for (long at = 0; at < count;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(buffer + at);
      if (std::strcmp(entry->name, ".") != 0 && std::strcmp(entry->name, "..") != 0)
        work(entry->name);
      at += entry->length;
    }
  }
}

}  // namespace cohabit
