// "torch=40%,tensorflow=30%,paddle=2GiB": what each framework may take of a GPU's memory, as its
// own setting. data/memory_settings.tsv has the variables; whether the installed release reads them
// is judged from its files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "repair/launch_needs.h"

namespace cohabit {

struct MemoryShare {
  std::string module;
  double percent = 0;  // of a GPU's memory; 0: given in bytes
  uint64_t bytes = 0;
};
// Refuses shares that exceed 100 % together.
Result<std::vector<MemoryShare>> parse_memory_shares(const std::string& text);

struct MemorySettings {
  std::vector<NeededVariable> variables;
  // For the start-up hook: "torch=0.4", "torch=2147483648"; empty: not needed.
  std::string hook;
  std::vector<std::string> untold;  // what no variable says, and what to do, in words
};
// facts.gpu.memory is the memory of the GPU, 0 if it is not known: then a share can be refused
// because the framework wants it in another unit.
Result<MemorySettings> memory_settings(const std::vector<MemoryShare>& shares,
                                       const LaunchFacts& facts);

}  // namespace cohabit
