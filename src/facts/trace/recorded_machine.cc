#include "facts/trace/recorded_machine.h"

#include <cstdio>

#include "facts/elf/format.h"
#include "facts/elf/object.h"

namespace cohabit {

namespace {

// The ld.so that was started, or that the program names; empty: the one where distributions put it.
std::string loader_of(const Tree& tree, const StartFacts& start) {
  if (!start.loader_command.empty()) {
    const std::string& loader = start.loader_command[0];
    return loader.starts_with('/') ? loader : start.cwd + "/" + loader;
  }
  const auto map = tree.map(start.executable);
  return map ? std::string(elf::parse(map->bytes()).interpreter) : "";
}

}  // namespace

Machine recorded_machine(const Tree& tree, const StartFacts& start) {
  Machine machine =
      read_machine(tree, start.machine == "aarch64" ? elf::EM_AARCH64 : elf::EM_X86_64, "",
                   loader_of(tree, start));
  if (!start.platform.empty()) machine.platform = start.platform;
  // Where the tracer ran (it tells the platform), ld.so was asked: an old CPU has none. It was,
  // too, where it was started with its options. Else none means unknown.
  const bool started_by_options = !start.loader_command.empty();
  if (!start.hwcaps.empty() || !start.platform.empty() || started_by_options) {
    machine.hwcaps = start.hwcaps;
    // Options choose directories, whatever the CPU is.
    machine.x86_isa_1 =
        started_by_options ? ~uint32_t{0} : isa_bits_of(machine.elf_machine, machine.hwcaps);
  }
  int major = 0;
  int minor = 0;
  if (std::sscanf(start.glibc.c_str(), "%d.%d", &major, &minor) == 2)
    machine.glibc = {major, minor};
  return machine;
}

}  // namespace cohabit
