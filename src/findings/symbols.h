// How many entries a symbol table really has.
#pragma once

#include <algorithm>
#include <cstdint>

#include "facts/elf/object.h"

namespace cohabit {

// No header tells the size of DT_SYMTAB: the reader hands out all that lies behind its address. The
// last symbol that can be found ends the last chain of DT_GNU_HASH.
inline uint32_t symbol_count(const elf::Object& elf) {
  if (!elf.gnu_hash) return elf.sysv_hash ? static_cast<uint32_t>(elf.sysv_hash->chain.size()) : 0;
  const elf::GnuHash& table = *elf.gnu_hash;
  uint64_t last = 0;
  for (uint32_t bucket = 0; bucket < table.buckets.size(); bucket++)
    last = std::max<uint64_t>(last, table.buckets[bucket]);
  if (last < table.symbol_offset) return table.symbol_offset;
  uint64_t at = last - table.symbol_offset;
  while (at < table.chain.size() && !(table.chain[at] & 1)) at++;
  return static_cast<uint32_t>(std::min(at + 1 + table.symbol_offset, elf.symbols.size()));
}

}  // namespace cohabit
