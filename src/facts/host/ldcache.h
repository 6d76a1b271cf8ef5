// /etc/ld.so.cache: soname -> path, as ldconfig wrote it. Formats: elf/dl-cache.c and
// sysdeps/generic/dl-cache.h of glibc ("ld.so-1.7.0", "glibc-ld.so.cache1.1", and both in one
// file).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace cohabit {

// What glibc before 2.37 makes of the old hwcap bits of an entry (libraries in haswell/, avx512_1/
// and the like). The default is the rule since 2.37: entries with any such bit are skipped.
struct LegacyHwcap {
  uint64_t accepted = 0;       // an entry with a bit outside of these is skipped
  uint64_t platform_mask = 0;  // the bits that name a platform
  uint64_t platform = 0;       // and what they must be, if any is set
};

class LdCache {
 public:
  // The names are views into the cache's own copy of the file.
  struct Entry {
    std::string_view name;
    std::string_view path;
    int32_t flags = 0;             // 0x0303 x86-64, 0x0a03 AArch64
    uint64_t hwcap = 0;            // is_named(): the low 32 bits index the file's list of names
    std::string_view hwcaps_name;  // "x86-64-v3" when the entry is from a glibc-hwcaps directory
    bool name_readable = false;    // the offsets are inside the file
    bool path_readable = false;
    bool is_named() const { return ((hwcap >> 32) & ~uint64_t{0x3ff}) == uint64_t{1} << 30; }
  };

  // Never fails: what cannot be read is told in problems().
  static LdCache parse(Bytes file);

  // The path that _dl_load_cache_lookup would return for a library of this ELF machine, given the
  // glibc-hwcaps subdirectories that are active on this CPU (best first). Nothing: not in the
  // cache.
  std::optional<std::string> lookup(std::string_view name, uint16_t elf_machine,
                                    const std::vector<std::string>& active_hwcaps,
                                    const LegacyHwcap& legacy = {}) const;

  const std::vector<Entry>& entries() const { return entries_; }  // in file order
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  struct Query;

  void parse_old(Bytes file, uint64_t count);
  void parse_new(Bytes file, uint64_t base);
  void parse_extension(Bytes file, uint32_t offset);
  void set_strings(Entry& entry, Bytes strings, uint32_t key, uint32_t value);
  std::vector<uint32_t> hwcaps_priorities(const std::vector<std::string>& active) const;
  bool name_is(int64_t index, const Query& query) const;
  std::optional<std::string> best_of_run(int64_t middle, int64_t right, const Query& query) const;

  std::shared_ptr<const std::string> text_;  // shared, so that copies keep the views valid
  std::vector<Entry> entries_;
  std::vector<std::string_view> hwcaps_names_;  // the extension's list, in its order
  std::vector<std::string> problems_;
};

// The levels of a CPU that takes these glibc-hwcaps subdirectories, as GNU_PROPERTY_X86_ISA_1_*
// bits; all where the machine has no levels.
uint32_t isa_bits_of(uint16_t elf_machine, const std::vector<std::string>& active_hwcaps);

}  // namespace cohabit
