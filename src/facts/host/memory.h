// How much memory a process that is started now may take: what the kernel calls available, or what
// the limit of our container leaves.
#pragma once

#include <cstdint>

#include "base/tree.h"

namespace cohabit {

// In bytes; 0: unknown.
uint64_t available_memory(const Tree& tree);

}  // namespace cohabit
