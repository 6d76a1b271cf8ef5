// The ELF64 structures and numbers we read, with the names of the specification (System V gABI,
// GNU extensions, x86-64 and AArch64 psABI). The only file that holds them.
#pragma once

#include <cstdint>

namespace cohabit::elf {

struct Ehdr {
  uint8_t e_ident[16];
  uint16_t e_type;
  uint16_t e_machine;
  uint32_t e_version;
  uint64_t e_entry;
  uint64_t e_phoff;
  uint64_t e_shoff;
  uint32_t e_flags;
  uint16_t e_ehsize;
  uint16_t e_phentsize;
  uint16_t e_phnum;
  uint16_t e_shentsize;
  uint16_t e_shnum;
  uint16_t e_shstrndx;
};

struct Phdr {
  uint32_t p_type;
  uint32_t p_flags;
  uint64_t p_offset;
  uint64_t p_vaddr;
  uint64_t p_paddr;
  uint64_t p_filesz;
  uint64_t p_memsz;
  uint64_t p_align;
};

struct Shdr {
  uint32_t sh_name;
  uint32_t sh_type;
  uint64_t sh_flags;
  uint64_t sh_addr;
  uint64_t sh_offset;
  uint64_t sh_size;
  uint32_t sh_link;
  uint32_t sh_info;
  uint64_t sh_addralign;
  uint64_t sh_entsize;
};

struct Dyn {
  int64_t d_tag;
  uint64_t d_val;
};

struct Sym {
  uint32_t st_name;
  uint8_t st_info;
  uint8_t st_other;
  uint16_t st_shndx;
  uint64_t st_value;
  uint64_t st_size;

  uint8_t bind() const { return st_info >> 4; }
  uint8_t type() const { return st_info & 15; }
  uint8_t visibility() const { return st_other & 3; }
};

struct Rela {
  uint64_t r_offset;
  uint64_t r_info;
  int64_t r_addend;

  uint32_t symbol() const { return static_cast<uint32_t>(r_info >> 32); }
  uint32_t type() const { return static_cast<uint32_t>(r_info); }
};

struct Verneed {
  uint16_t vn_version;
  uint16_t vn_cnt;
  uint32_t vn_file;
  uint32_t vn_aux;
  uint32_t vn_next;
};

struct Vernaux {
  uint32_t vna_hash;
  uint16_t vna_flags;
  uint16_t vna_other;
  uint32_t vna_name;
  uint32_t vna_next;
};

struct Verdef {
  uint16_t vd_version;
  uint16_t vd_flags;
  uint16_t vd_ndx;
  uint16_t vd_cnt;
  uint32_t vd_hash;
  uint32_t vd_aux;
  uint32_t vd_next;
};

struct Verdaux {
  uint32_t vda_name;
  uint32_t vda_next;
};

constexpr uint16_t EM_X86_64 = 62, EM_AARCH64 = 183;
constexpr uint16_t ET_EXEC = 2, ET_DYN = 3;
constexpr uint32_t PT_LOAD = 1, PT_DYNAMIC = 2, PT_INTERP = 3, PT_NOTE = 4, PT_PHDR = 6, PT_TLS = 7,
                   PT_GNU_STACK = 0x6474e551, PT_GNU_RELRO = 0x6474e552;

// What both architectures' kernels of today map by, and ld.so rounds to.
constexpr uint64_t kPageSize = 4096;

constexpr uint64_t page_start(uint64_t address) {
  return address & ~(kPageSize - 1);
}

constexpr uint64_t page_end(uint64_t address) {
  return page_start(address + kPageSize - 1);
}
constexpr uint32_t SHT_PROGBITS = 1;
constexpr uint64_t SHF_WRITE = 1, SHF_ALLOC = 2, SHF_EXECINSTR = 4;
constexpr uint32_t PF_X = 1, PF_W = 2, PF_R = 4;

constexpr int64_t DT_NULL = 0, DT_NEEDED = 1, DT_PLTRELSZ = 2, DT_PLTGOT = 3, DT_HASH = 4,
                  DT_STRTAB = 5, DT_SYMTAB = 6, DT_RELA = 7, DT_RELASZ = 8, DT_RELAENT = 9,
                  DT_STRSZ = 10, DT_INIT = 12, DT_FINI = 13, DT_SONAME = 14, DT_RPATH = 15,
                  DT_SYMBOLIC = 16, DT_REL = 17, DT_PLTREL = 20, DT_TEXTREL = 22, DT_JMPREL = 23,
                  DT_BIND_NOW = 24, DT_INIT_ARRAY = 25, DT_FINI_ARRAY = 26, DT_INIT_ARRAYSZ = 27,
                  DT_FINI_ARRAYSZ = 28, DT_RUNPATH = 29, DT_FLAGS = 30, DT_PREINIT_ARRAY = 32,
                  DT_RELRSZ = 35, DT_RELR = 36, DT_RELRENT = 37, DT_GNU_HASH = 0x6ffffef5,
                  DT_VERSYM = 0x6ffffff0, DT_RELACOUNT = 0x6ffffff9, DT_FLAGS_1 = 0x6ffffffb,
                  DT_VERDEF = 0x6ffffffc, DT_VERDEFNUM = 0x6ffffffd, DT_VERNEED = 0x6ffffffe,
                  DT_VERNEEDNUM = 0x6fffffff, DT_DEPAUDIT = 0x6ffffefb, DT_AUDIT = 0x6ffffefc,
                  DT_AUXILIARY = 0x7ffffffd, DT_FILTER = 0x7fffffff,
                  DT_AARCH64_VARIANT_PCS = 0x70000005;
constexpr uint64_t DF_ORIGIN = 1, DF_SYMBOLIC = 2, DF_TEXTREL = 4, DF_BIND_NOW = 8,
                   DF_STATIC_TLS = 16;
constexpr uint64_t DF_1_NOW = 1, DF_1_GLOBAL = 2, DF_1_NODELETE = 8, DF_1_INITFIRST = 0x20,
                   DF_1_NOOPEN = 0x40, DF_1_NODEFLIB = 0x800, DF_1_PIE = 0x08000000;

constexpr uint16_t SHN_UNDEF = 0, SHN_ABS = 0xfff1;
constexpr uint8_t STB_LOCAL = 0, STB_GLOBAL = 1, STB_WEAK = 2, STB_GNU_UNIQUE = 10;
constexpr uint8_t STT_NOTYPE = 0, STT_OBJECT = 1, STT_FUNC = 2, STT_COMMON = 5, STT_TLS = 6,
                  STT_GNU_IFUNC = 10;
constexpr uint8_t STV_DEFAULT = 0, STV_INTERNAL = 1, STV_HIDDEN = 2, STV_PROTECTED = 3;
constexpr uint8_t STO_AARCH64_VARIANT_PCS = 0x80;

constexpr uint16_t VER_FLG_BASE = 1, VER_FLG_WEAK = 2;
constexpr uint16_t kVersionHidden = 0x8000, kVersionIndex = 0x7fff;

constexpr uint32_t R_X86_64_NONE = 0, R_X86_64_64 = 1, R_X86_64_PC32 = 2, R_X86_64_COPY = 5,
                   R_X86_64_GLOB_DAT = 6, R_X86_64_JUMP_SLOT = 7, R_X86_64_RELATIVE = 8,
                   R_X86_64_32 = 10, R_X86_64_DTPMOD64 = 16, R_X86_64_DTPOFF64 = 17,
                   R_X86_64_TPOFF64 = 18, R_X86_64_SIZE32 = 32, R_X86_64_SIZE64 = 33,
                   R_X86_64_TLSDESC = 36, R_X86_64_IRELATIVE = 37, R_X86_64_RELATIVE64 = 38;
constexpr uint32_t R_AARCH64_NONE = 0, R_AARCH64_ABS64 = 257, R_AARCH64_ABS32 = 258,
                   R_AARCH64_COPY = 1024, R_AARCH64_GLOB_DAT = 1025, R_AARCH64_JUMP_SLOT = 1026,
                   R_AARCH64_RELATIVE = 1027, R_AARCH64_TLS_DTPMOD = 1028,
                   R_AARCH64_TLS_DTPREL = 1029, R_AARCH64_TLS_TPREL = 1030,
                   R_AARCH64_TLSDESC = 1031, R_AARCH64_IRELATIVE = 1032;

}  // namespace cohabit::elf
