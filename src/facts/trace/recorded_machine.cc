#include "facts/trace/recorded_machine.h"

#include <cstdio>

#include "facts/elf/format.h"
#include "facts/elf/object.h"

namespace cohabit {

namespace {

// The ld.so that the program names; empty: the one where distributions put it.
std::string loader_of(const Tree& tree, const std::string& executable) {
  const auto map = tree.map(executable);
  return map ? std::string(elf::parse(map->bytes()).interpreter) : "";
}

}  // namespace

Machine recorded_machine(const Tree& tree, const StartFacts& start) {
  Machine machine =
      read_machine(tree, start.machine == "aarch64" ? elf::EM_AARCH64 : elf::EM_X86_64, "",
                   loader_of(tree, start.executable));
  if (!start.platform.empty()) machine.platform = start.platform;
  if (!start.hwcaps.empty()) machine.hwcaps = start.hwcaps;
  int major = 0;
  int minor = 0;
  if (std::sscanf(start.glibc.c_str(), "%d.%d", &major, &minor) == 2)
    machine.glibc = {major, minor};
  return machine;
}

}  // namespace cohabit
