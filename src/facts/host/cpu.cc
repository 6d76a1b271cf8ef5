// Rules: glibc's sysdeps/x86/get-isa-level.h (levels) and the end of init_cpu_features in
// sysdeps/x86/cpu-features.c ($PLATFORM and the legacy bits, on Intel only: an AMD CPU of level 4
// has the platform "x86_64"). A feature counts only if the operating system saves its registers.
#include "facts/host/cpu.h"

#include <sys/auxv.h>

#include <array>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace cohabit {
namespace {

constexpr uint16_t kX86_64 = 62;

#if defined(__x86_64__)
struct Leaf {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Leaf cpuid(uint32_t leaf) {
  Leaf r;
  if (!__get_cpuid_count(leaf, 0, &r.eax, &r.ebx, &r.ecx, &r.edx)) return {};
  return r;
}

bool has(uint32_t word, std::initializer_list<int> bits) {
  for (const int bit : bits)
    if ((word >> bit & 1) == 0) return false;
  return true;
}

// XCR0: which register sets the operating system saves.
uint32_t saved_registers(const Leaf& features) {
  if (!has(features.ecx, {27})) return 0;  // OSXSAVE
  uint32_t low = 0;
  uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

Cpu read_x86() {
  const Leaf vendor = cpuid(0);
  const Leaf basic = cpuid(1);
  const Leaf more = cpuid(7);
  const Leaf extended = cpuid(0x80000001);
  const uint32_t saved = saved_registers(basic);
  const bool ymm = (saved & 0x6) == 0x6;
  const bool zmm = (saved & 0xe6) == 0xe6;
  const bool avx2 = ymm && has(basic.ecx, {28}) && has(more.ebx, {5});

  Cpu cpu;
  cpu.bmi = has(more.ebx, {3, 8});
  // SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF.
  const bool v2 = has(basic.ecx, {0, 9, 13, 19, 20, 23}) && has(extended.ecx, {0});
  // FMA, MOVBE, F16C; LZCNT.
  const bool v3 = v2 && avx2 && has(basic.ecx, {12, 22, 29}) && has(extended.ecx, {5});
  // AVX512 F, DQ, CD, BW, VL.
  const bool v4 = v3 && zmm && has(more.ebx, {16, 17, 28, 30, 31});
  cpu.level = v4 ? 4 : v3 ? 3 : v2 ? 2 : 1;

  const bool intel = vendor.ebx == 0x756e6547 && vendor.edx == 0x49656e69;  // "GenuineIntel"
  if (!intel) return cpu;
  const bool avx512cd = zmm && has(more.ebx, {16, 28});
  if (avx512cd && has(more.ebx, {26, 27})) {  // PF and ER
    cpu.platform = "xeon_phi";
  } else if (avx2 && cpu.bmi && has(basic.ecx, {12, 22, 23}) && has(extended.ecx, {5})) {
    cpu.platform = "haswell";
  }
  cpu.avx512_1 = avx512cd && !has(more.ebx, {27}) && has(more.ebx, {17, 30, 31});
  return cpu;
}
#endif

std::string kernel_platform() {
  const auto* text = reinterpret_cast<const char*>(getauxval(AT_PLATFORM));
  return text ? text : "";
}

}  // namespace

Cpu read_cpu(uint16_t elf_machine) {
  Cpu cpu;
#if defined(__x86_64__)
  if (elf_machine == kX86_64) {
    cpu = read_x86();
    if (cpu.platform.empty()) cpu.platform = kernel_platform();
    return cpu;
  }
#elif defined(__aarch64__)
  if (elf_machine != kX86_64) {
    cpu.platform = kernel_platform();
    cpu.atomics = (getauxval(AT_HWCAP) >> 8 & 1) != 0;
    return cpu;
  }
#endif
  cpu.platform = elf_machine == kX86_64 ? "x86_64" : "aarch64";
  cpu.is_assumed = true;
  return cpu;
}

std::optional<Cpu> find_cpu(const std::string& name) {
  struct Named {
    const char* name;
    int level;
    bool avx512_1;
    const char* platform;
  };
  static constexpr std::array<Named, 7> kCpus{{{"x86-64", 1, false, "x86_64"},
                                               {"x86-64-v2", 2, false, "x86_64"},
                                               {"x86-64-v3", 3, false, "x86_64"},
                                               {"x86-64-v4", 4, false, "x86_64"},
                                               {"haswell", 3, false, "haswell"},
                                               {"skylake-avx512", 4, true, "haswell"},
                                               {"xeon_phi", 3, false, "xeon_phi"}}};
  for (const Named& known : kCpus) {
    if (name != known.name) continue;
    Cpu cpu;
    cpu.level = known.level;
    cpu.avx512_1 = known.avx512_1;
    cpu.platform = known.platform;
    return cpu;
  }
  return std::nullopt;
}

}  // namespace cohabit
