// Where an address of a loaded file is in the file, and what may be done there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "facts/elf/object.h"

namespace cohabit::elf {

inline std::optional<uint64_t> offset_of(const Object& object, uint64_t address) {
  for (const Phdr& one : object.segments)
    if (address - one.p_vaddr < one.p_filesz) return one.p_offset + (address - one.p_vaddr);
  return std::nullopt;
}

// `rights`: one of PF_R, PF_W, PF_X, or several of which one is enough.
inline bool has_rights(const Object& object, uint64_t address, uint32_t rights) {
  return std::any_of(object.segments.begin(), object.segments.end(), [&](const Phdr& one) {
    return (one.p_flags & rights) && address - one.p_vaddr < one.p_memsz;
  });
}

}  // namespace cohabit::elf
