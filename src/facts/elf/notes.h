// Notes of an ELF file: its build id, and the properties that make ld.so refuse it.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"

namespace cohabit::elf {

constexpr uint32_t GNU_PROPERTY_1_NEEDED = 0xb0008000, GNU_PROPERTY_X86_FEATURE_1_AND = 0xc0000002,
                   GNU_PROPERTY_X86_ISA_1_NEEDED = 0xc0008002;
constexpr uint32_t GNU_PROPERTY_1_NEEDED_INDIRECT_EXTERN_ACCESS = 1;

// l_1_needed and l_x86_isa_1_needed of a link map: bits.
struct Properties {
  uint32_t needed_1 = 0;
  uint32_t x86_isa_1_needed = 0;
};

// Of the notes in the memory of one PT_NOTE segment of alignment 8, as _dl_process_property_note
// of sysdeps/x86/dl-prop.h reads them.
Properties read_properties(Bytes notes);

// NT_GNU_BUILD_ID in hex; empty if there is none.
std::string read_build_id(Bytes notes);

}  // namespace cohabit::elf
