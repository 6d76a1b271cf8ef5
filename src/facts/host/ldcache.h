// /etc/ld.so.cache: soname -> path, as ldconfig wrote it. Formats: elf/dl-cache.c and
// sysdeps/generic/dl-cache.h of glibc ("ld.so-1.7.0", "glibc-ld.so.cache1.1", and both in one file).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace cohabit {

class LdCache {
 public:
  struct Entry {
    std::string name;
    std::string path;
    int32_t flags = 0;        // 0x0303 x86-64, 0x0a03 AArch64
    uint64_t hwcap = 0;       // bit 62: the low 32 bits index hwcaps_names
    std::string hwcaps_name;  // "x86-64-v3" when the entry is from a glibc-hwcaps directory
  };

  // Never fails: what cannot be read is told in problems().
  static LdCache parse(Bytes file);

  // The path that _dl_load_cache_lookup would return for a library of this ELF machine, given the
  // glibc-hwcaps subdirectories that are active on this CPU (best first). Nothing: not in the cache.
  std::optional<std::string> lookup(std::string_view name, uint16_t elf_machine,
                                    const std::vector<std::string>& active_hwcaps) const;

  const std::vector<Entry>& entries() const { return entries_; }
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  std::vector<Entry> entries_;  // in file order
  std::vector<std::string> problems_;
};

}  // namespace cohabit
