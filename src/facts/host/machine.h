// The machine as the dynamic loader sees it: which ld.so, its version, where it looks by itself.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/tree.h"
#include "facts/host/cpu.h"
#include "facts/host/ldcache.h"

namespace cohabit {

struct GlibcVersion {
  int major = 0;
  int minor = 0;
  auto operator<=>(const GlibcVersion&) const = default;
};

// Everything about the loader that does not depend on the process.
struct Machine {
  uint16_t elf_machine = 0;  // EM_X86_64 (62) or EM_AARCH64 (183)
  GlibcVersion glibc;        // 0.0 when unknown
  std::string loader_path;   // PT_INTERP's file, e.g. /lib64/ld-linux-x86-64.so.2
  std::string libc_path;     // the libc.so.6 of that loader; empty if not found
  std::string platform;      // $PLATFORM, AT_PLATFORM, e.g. "haswell", "x86_64", "aarch64"
  std::string lib;           // $LIB, e.g. "lib/x86_64-linux-gnu" (Debian), "lib64" (Fedora)
  std::vector<std::string> default_directories;  // in order, each ends with "/"
  std::vector<std::string> hwcaps;  // glibc-hwcaps subdirectories this CPU takes, best first
                                    // ("x86-64-v4", "x86-64-v3", "x86-64-v2"); empty before 2.33
  // GNU_PROPERTY_X86_ISA_1_*: bit 0 the baseline, bit 1 x86-64-v2 and so on. All where the CPU is
  // not known.
  uint32_t x86_isa_1 = ~uint32_t{0};
  std::vector<std::string> legacy_hwcaps;  // subdirectories tried before the plain directory by old
                                           // glibc ("tls/haswell/x86_64/", ...), in order, with
                                           // ld.so's own repetitions; empty since 2.37
  LegacyHwcap legacy_cache;                // the same for entries of ld.so.cache
  LdCache cache;                           // /etc/ld.so.cache, empty if there is none
  std::vector<std::string> preload_file;   // items of /etc/ld.so.preload
  // Name and path of libraries that are taken to be installed (world/driver_stand_in.h); what the
  // cache has goes before.
  std::vector<std::pair<std::string, std::string>> assumed;
  std::vector<std::string> problems;  // what could not be read, in words
};

// Reads the facts of the machine below tree's root, for programs of this ELF machine.
//
// CPU facts come from the running machine, or from `cpu_level`: "x86-64", "x86-64-v2" to "-v4" (a
// CPU not made by Intel), or "haswell", "skylake-avx512", "xeon_phi" (Intel: they alter $PLATFORM).
// `interpreter` is the PT_INTERP of the program; empty: where distributions put it.
Machine read_machine(const Tree& tree, uint16_t elf_machine, const std::string& cpu_level = "",
                     const std::string& interpreter = "");
// For a CPU whose facts are known from elsewhere.
Machine read_machine(const Tree& tree, uint16_t elf_machine, const Cpu& cpu,
                     const std::string& interpreter = "");

// What ld.so finds for a name in the machine's cache.
std::optional<std::string> find_in_cache(const Machine& machine, std::string_view name);

// The names in the text of /etc/ld.so.preload, as glibc's rtld.c takes them apart.
std::vector<std::string> parse_preload_file(std::string text);

// From an environment in the form of environ: the variables that ld.so reads.
std::vector<std::pair<std::string, std::string>> loading_variables(const char* const* environment);

}  // namespace cohabit
