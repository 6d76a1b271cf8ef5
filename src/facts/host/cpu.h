// The CPU as ld.so names it in directories: glibc-hwcaps levels and the older platform names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cohabit {

struct Cpu {
  int level = 1;            // x86-64-v<level>; 1 is the baseline
  bool bmi = true;          // has BMI1 and BMI2, which glibc asks for level 3 since 2.37
  bool avx512_1 = false;    // Intel with AVX512 CD, BW, DQ and VL: legacy subdirectory avx512_1
  std::string platform;     // "haswell", "xeon_phi" on Intel, else AT_PLATFORM
  bool atomics = true;      // AArch64: HWCAP_ATOMICS, legacy subdirectory atomics
  bool is_assumed = false;  // the running machine is of another kind: the values are the usual ones
};

// The running machine's CPU, for programs of this ELF machine.
Cpu read_cpu(uint16_t elf_machine);
// The CPU of a name that read_machine documents; nothing if unknown.
std::optional<Cpu> find_cpu(const std::string& name);

}  // namespace cohabit
