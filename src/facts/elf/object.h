// What the dynamic loader reads of one ELF file: its dynamic section and the tables that it names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "facts/elf/format.h"
#include "facts/elf/notes.h"

namespace cohabit::elf {

// Something in the file that is not as it must be.
struct Defect {
  uint64_t offset = 0;  // in the file
  std::string what;
  // ld.so does not look for it: it reads or writes elsewhere, and as a rule dies of it.
  bool fatal = false;
};

// One DT_NEEDED, DT_AUXILIARY or DT_FILTER, in file order.
struct Dependency {
  int64_t tag = DT_NEEDED;
  std::string_view name;
};

// DT_VERNEED: this object asks `file` (a soname) for version `name`.
struct VersionNeed {
  std::string_view file;
  std::string_view name;
  uint32_t hash = 0;
  uint16_t index = 0;  // in DT_VERSYM, without the hidden bit
  bool hidden = false;
  bool weak = false;
};

// DT_VERDEF: this object defines version `name`.
struct VersionDefinition {
  std::string_view name;
  uint32_t hash = 0;
  uint16_t index = 0;
  bool base = false;    // names the file itself, matches no symbol
  uint16_t record = 1;  // vd_version: of the record's form, ld.so knows 1
};

// What a version index in DT_VERSYM means (glibc: l_versions). hash 0: no version.
struct Version {
  std::string_view name;
  std::string_view file;  // empty for versions that the object defines itself
  uint32_t hash = 0;
  bool hidden = false;
};

struct GnuHash {
  // Whether ld.so goes on to the chains for a name with this hash.
  bool may_have(uint32_t hash) const {
    if (bloom.empty()) return true;
    const uint64_t word = bloom[hash / 64 & (bloom.size() - 1)];
    return word >> (hash & 63) & word >> (hash >> bloom_shift & 63) & 1;
  }

  uint32_t bucket_count = 0;
  uint32_t symbol_offset = 0;
  uint32_t bloom_shift = 0;
  Table<uint64_t> bloom;  // as many words as a power of two, or none: what was there is no filter
  Table<uint32_t> buckets;
  Table<uint32_t> chain;  // indexed by symbol - symbol_offset; as many as symbols are known
};

struct SysvHash {
  Table<uint32_t> buckets;
  Table<uint32_t> chain;
};

struct TlsSegment {
  uint64_t size = 0;  // p_memsz
  uint64_t align = 1;
  uint64_t first_byte = 0;  // p_vaddr mod align
};

// PT_GNU_RELRO: made read-only after relocation.
struct Relro {
  uint64_t address = 0;
  uint64_t size = 0;
};

enum class StackDemand { kAbsent, kNonExecutable, kExecutable };

// Views point into the file; keep its map alive.
struct Object {
  uint16_t machine = 0;
  uint16_t type = 0;
  std::string_view interpreter;
  std::vector<Phdr> segments;  // PT_LOAD only
  std::optional<TlsSegment> tls;
  Relro relro;
  StackDemand stack = StackDemand::kAbsent;
  std::string build_id;  // hex, empty if none

  bool has_dynamic = false;
  std::optional<std::string_view> soname;
  std::optional<std::string_view> rpath;
  std::optional<std::string_view> runpath;
  std::vector<Dependency> dependencies;
  uint64_t flags = 0;     // DF_*
  uint64_t flags_1 = 0;   // DF_1_*
  bool symbolic = false;  // DT_SYMBOLIC or DF_SYMBOLIC
  bool bind_now = false;  // DT_BIND_NOW, DF_BIND_NOW or DF_1_NOW
  bool textrel = false;
  bool has_constructor = false;  // DT_INIT or DT_INIT_ARRAY
  bool variant_pcs = false;      // DT_AARCH64_VARIANT_PCS
  bool has_relr = false;
  bool names_auditors = false;  // DT_AUDIT, DT_DEPAUDIT: the program's count
  Properties properties;        // x86-64 only

  // DT_STRTAB to the last NUL of its segment: ld.so does not look at DT_STRSZ.
  Bytes strings;
  uint64_t strings_size = 0;  // DT_STRSZ, a hint
  Table<Sym> symbols;      // as many as can be proven to exist by the hash tables, see symbol_count
  Table<uint16_t> versym;  // empty: no versions
  std::vector<VersionNeed> version_needs;
  uint16_t version_needs_record = 1;  // vn_version of the first: ld.so knows 1
  std::vector<VersionDefinition> version_definitions;
  std::vector<Version> versions;  // by version index; empty when the object has no version tables
  std::optional<GnuHash> gnu_hash;
  std::optional<SysvHash> sysv_hash;

  Table<Rela> rela;             // DT_RELA
  uint64_t relative_count = 0;  // DT_RELACOUNT: leading entries of rela without a symbol
  Table<Rela> jmprel;           // DT_JMPREL

  std::vector<Defect> defects;

  // Empty when out of bounds.
  std::string_view string(uint64_t offset) const {
    return strings.c_string(offset).value_or(std::string_view());
  }
  std::string_view symbol_name(uint32_t index) const { return string(symbols[index].st_name); }
  // Of C++; the rest of its name is not read.
  bool is_mangled(uint32_t index) const {
    const auto start = strings.slice(symbols[index].st_name, 2);
    return start && start->text() == "_Z";
  }
  // The version wanted by (undefined) or belonging to (defined) a symbol; null if none.
  const Version* version_of(uint32_t index) const;
};

// Why the loader would not take a file, in its own words; kSkip: it goes on searching.
enum class HeaderVerdict { kLoadable, kOtherClass, kOtherMachine, kFatal };
struct HeaderCheck {
  HeaderVerdict verdict = HeaderVerdict::kLoadable;
  std::string message;  // ld.so's text for kFatal, e.g. "invalid ELF header"
};
// As open_verify in elf/dl-load.c decides, from the file's first bytes.
HeaderCheck check_header(Bytes file, uint16_t machine);

// Never fails: what is wrong stands in defects, and what could be read is there.
Object parse(Bytes file);

// The hash functions of DT_GNU_HASH and DT_HASH.
uint32_t gnu_hash(std::string_view name);
// Of the NUL-terminated string at the start; of the empty string if no NUL follows.
uint32_t gnu_hash_of_string(Bytes text);
uint32_t sysv_hash(std::string_view name);

}  // namespace cohabit::elf
