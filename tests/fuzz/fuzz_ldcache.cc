// The reader of ld.so.cache: any bytes, then lookups of the names in it and of one that is not.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "facts/host/ldcache.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const cohabit::LdCache cache = cohabit::LdCache::parse(cohabit::Bytes(data, size));
  const std::vector<std::string> active = {"x86-64-v3", "x86-64-v2"};
  const cohabit::LegacyHwcap legacy = {uint64_t{1} << 63 | 2, uint64_t{0xf} << 48, 0};
  constexpr size_t kEnough = 64;
  for (size_t i = 0; i < cache.entries().size() && i < kEnough; i++) {
    const cohabit::LdCache::Entry& entry = cache.entries()[i];
    for (const uint16_t machine : {uint16_t{62}, uint16_t{183}, uint16_t{3}}) {
      const auto path = cache.lookup(entry.name, machine, active, legacy);
      // Whatever is found has a readable path in the file.
      if (path && path->size() > 4096) std::abort();
    }
  }
  (void)cache.lookup("libc.so.6", 62, {});
  return 0;
}
