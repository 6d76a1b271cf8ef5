// The sections of an ELF file that have a content: what linkers see, not the loader.
#pragma once

#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "facts/elf/format.h"

namespace cohabit::elf {

struct Section {
  std::string_view name;
  uint64_t offset = 0;  // in the file
  uint64_t size = 0;
  uint64_t flags = 0;  // SHF_*
};

// Those of type SHT_PROGBITS that lie inside the file; none if it is not an ELF file of 64 bits or
// has no table of them.
std::vector<Section> read_sections(Bytes file);

}  // namespace cohabit::elf
