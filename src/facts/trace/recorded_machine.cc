#include "facts/trace/recorded_machine.h"

#include <cstdio>

#include "facts/elf/format.h"

namespace cohabit {

Machine recorded_machine(const Tree& tree, const StartFacts& start) {
  Machine machine =
      read_machine(tree, start.machine == "aarch64" ? elf::EM_AARCH64 : elf::EM_X86_64);
  if (!start.platform.empty()) machine.platform = start.platform;
  if (!start.hwcaps.empty()) machine.hwcaps = start.hwcaps;
  int major = 0;
  int minor = 0;
  if (std::sscanf(start.glibc.c_str(), "%d.%d", &major, &minor) == 2)
    machine.glibc = {major, minor};
  return machine;
}

}  // namespace cohabit
