// How much memory a process that is started now may take: what the kernel calls available, or what
// the limit of our container leaves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/tree.h"

namespace cohabit {

// The limit of a control group that this process is in, the tightest of those around it. Bytes.
struct GroupMemory {
  std::string group;  // directory below /sys/fs/cgroup
  uint64_t limit = 0, used = 0;
  uint64_t killed = 0;  // processes that the kernel has ended for it
};
std::optional<GroupMemory> group_memory(const Tree& tree);

// In bytes; 0: unknown.
uint64_t available_memory(const Tree& tree);

}  // namespace cohabit
