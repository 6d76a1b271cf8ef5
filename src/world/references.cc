#include "world/references.h"

#include <algorithm>
#include <future>
#include <system_error>
#include <vector>

#include "base/mapped_file.h"

namespace cohabit {
namespace {

using elf::Object;
using elf::Sym;

enum class RelocationEffect { kNoLookup, kLookup, kUnexpected };

struct Classified {
  RelocationEffect effect;
  RefKind kind;
};

// elf_machine_type_class and elf_machine_rela of sysdeps/x86_64/dl-machine.h (glibc 2.36).
Classified classify_x86_64(uint32_t type, bool in_jmprel) {
  switch (type) {
    case elf::R_X86_64_NONE:
    case elf::R_X86_64_RELATIVE:
    case elf::R_X86_64_RELATIVE64:
    case elf::R_X86_64_IRELATIVE:
      return {RelocationEffect::kNoLookup, RefKind::kData};
    case elf::R_X86_64_JUMP_SLOT:
      return {RelocationEffect::kLookup, in_jmprel ? RefKind::kJumpSlot : RefKind::kPltNow};
    case elf::R_X86_64_DTPMOD64:
    case elf::R_X86_64_DTPOFF64:
      return {RelocationEffect::kLookup, RefKind::kTls};
    case elf::R_X86_64_TPOFF64:
      return {RelocationEffect::kLookup, RefKind::kStaticTls};
    case elf::R_X86_64_TLSDESC:
      return {RelocationEffect::kLookup, RefKind::kTlsDesc};
    case elf::R_X86_64_COPY:
      return {RelocationEffect::kLookup, RefKind::kCopy};
    case elf::R_X86_64_GLOB_DAT:
    case elf::R_X86_64_64:
    case elf::R_X86_64_32:
    case elf::R_X86_64_PC32:
    case elf::R_X86_64_SIZE32:
    case elf::R_X86_64_SIZE64:
      return {RelocationEffect::kLookup, RefKind::kData};
    default:
      return {RelocationEffect::kUnexpected, RefKind::kData};
  }
}

Classified classify_aarch64(uint32_t type, bool in_jmprel) {
  switch (type) {
    case elf::R_AARCH64_NONE:
    case elf::R_AARCH64_RELATIVE:
    case elf::R_AARCH64_IRELATIVE:
      return {RelocationEffect::kNoLookup, RefKind::kData};
    case elf::R_AARCH64_JUMP_SLOT:
      return {RelocationEffect::kLookup, in_jmprel ? RefKind::kJumpSlot : RefKind::kPltNow};
    case elf::R_AARCH64_TLS_DTPMOD:
    case elf::R_AARCH64_TLS_DTPREL:
      return {RelocationEffect::kLookup, RefKind::kTls};
    case elf::R_AARCH64_TLS_TPREL:
      return {RelocationEffect::kLookup, RefKind::kStaticTls};
    case elf::R_AARCH64_TLSDESC:
      return {RelocationEffect::kLookup, RefKind::kTlsDesc};
    case elf::R_AARCH64_COPY:
      return {RelocationEffect::kLookup, RefKind::kCopy};
    case elf::R_AARCH64_GLOB_DAT:
    case elf::R_AARCH64_ABS64:
    case elf::R_AARCH64_ABS32:
      return {RelocationEffect::kLookup, RefKind::kData};
    default:
      return {RelocationEffect::kUnexpected, RefKind::kData};
  }
}

Classified classify(uint16_t machine, uint32_t type, bool in_jmprel) {
  return machine == elf::EM_AARCH64 ? classify_aarch64(type, in_jmprel)
                                    : classify_x86_64(type, in_jmprel);
}

// The types that elf_machine_lazy_rel takes.
bool may_be_lazy(uint16_t machine, uint32_t type) {
  if (machine == elf::EM_AARCH64)
    return type == elf::R_AARCH64_JUMP_SLOT || type == elf::R_AARCH64_TLSDESC ||
           type == elf::R_AARCH64_IRELATIVE;
  return type == elf::R_X86_64_JUMP_SLOT || type == elf::R_X86_64_TLSDESC ||
         type == elf::R_X86_64_IRELATIVE;
}

// A symbol that resolve_map in elf/dl-reloc.c takes from the object itself without looking.
bool binds_locally(const Sym& symbol) {
  return symbol.bind() == elf::STB_LOCAL || symbol.visibility() == elf::STV_HIDDEN ||
         symbol.visibility() == elf::STV_INTERNAL;
}

// Collects references without duplicates; `name` is st_name until hash_names.
class Reader {
 public:
  explicit Reader(const Object& object) : object_(object) {}

  References run() {
    // Room that is never written costs nothing, growing copies.
    result_.list.reserve(count_relocations(object_));
    collect(object_.rela, object_.relative_count, false);
    collect(object_.jmprel, 0, true);
    hash_names();
    say_defects();
    return std::move(result_);
  }

 private:
  void say_defects() {
    const auto say = [&](bool is_there, const char* what) {
      if (is_there) result_.defects.push_back({0, what, true});
    };
    say(has_foreign_symbol_, "a relocation names a symbol behind the symbol table");
    say(has_foreign_name_, "a symbol's name is not inside the string table");
    say(writes_elsewhere_, "a relocation writes where nothing can be written");
    say(has_foreign_version_, "a symbol has a version index that no table explains");
  }

  void collect(const Table<elf::Rela>& table, uint64_t first, bool in_jmprel) {
    constexpr uint64_t kAhead = 24;
    for (uint64_t i = first; i < table.size(); i++) {
      const uint32_t soon = table[i + kAhead].symbol();
      object_.symbols.prefetch(soon);
      if (soon < seen_.size()) __builtin_prefetch(&seen_[soon]);
      add(table[i], in_jmprel);
    }
  }

  bool has_seen(uint32_t symbol, RefKind kind) const {
    return symbol < seen_.size() && (seen_[symbol] >> static_cast<unsigned>(kind) & 1);
  }

  // Relocations stand side by side in few segments, so the last one mostly has the next too.
  bool is_writable(uint64_t address) {
    if (address - writable_.p_vaddr < writable_.p_memsz) return true;
    for (const elf::Phdr& segment : object_.segments) {
      if (address - segment.p_vaddr >= segment.p_memsz) continue;
      if (!(segment.p_flags & elf::PF_W) && !object_.textrel) return false;
      writable_ = segment;
      return true;
    }
    return false;
  }

  void note(UnexpectedType& place, uint32_t type, bool plt) const {
    if (place.after == SIZE_MAX) place = {type, result_.list.size(), plt};
  }

  // ld.so looks up the symbol of a relocation before it looks at the type.
  void add(const elf::Rela& relocation, bool in_jmprel) {
    const uint32_t type = relocation.type();
    if (!is_writable(relocation.r_offset) && type != 0) writes_elsewhere_ = true;
    const auto [effect, kind] = classify(object_.machine, type, in_jmprel);
    if (in_jmprel && !may_be_lazy(object_.machine, type))
      note(result_.unexpected_lazily, type, true);
    if (effect == RelocationEffect::kNoLookup) return;
    add_lookup(relocation, kind);
    if (effect != RelocationEffect::kUnexpected) return;
    note(result_.unexpected, type, false);
    if (!in_jmprel) note(result_.unexpected_lazily, type, false);
  }

  void add_lookup(const elf::Rela& relocation, RefKind kind) {
    const uint32_t symbol = relocation.symbol();
    if (has_seen(symbol, kind)) return;
    const Sym entry = object_.symbols[symbol];
    if (symbol >= object_.symbols.size()) has_foreign_symbol_ = true;
    if (symbol >= object_.symbols.size() || binds_locally(entry)) {
      result_.own_static_tls |= kind == RefKind::kStaticTls;
      return;
    }
    if (kind == RefKind::kJumpSlot && object_.variant_pcs &&
        (entry.st_other & elf::STO_AARCH64_VARIANT_PCS))
      kind = RefKind::kPltNow;
    if (has_seen(symbol, kind)) return;
    // DT_SYMTAB has no length that could be trusted, so this grows with what is met.
    if (symbol >= seen_.size())
      seen_.resize(std::min<size_t>(object_.symbols.size(), size_t{symbol} * 2 + 1024));
    seen_[symbol] |= static_cast<uint8_t>(1u << static_cast<unsigned>(kind));
    note_defects(symbol, entry);
    const elf::Version* version = object_.version_of(symbol);
    const VersionId version_index = version ? object_.versym[symbol] & elf::kVersionIndex : 0;
    result_.list.push_back({symbol, entry.st_name, version_index, kind, version && version->hidden,
                            entry.bind() == elf::STB_WEAK,
                            entry.visibility() == elf::STV_PROTECTED});
  }

  // ld.so takes st_name as it is, and the version index where there is DT_VERSYM, to read
  // l_versions[index], which exists where DT_VERNEED or DT_VERDEF have an index.
  void note_defects(uint32_t symbol, const Sym& entry) {
    has_foreign_name_ |= entry.st_name >= object_.strings.size();
    if (object_.versym.empty()) return;
    const uint16_t index = object_.versym[symbol] & elf::kVersionIndex;
    has_foreign_version_ |= index != 0 && index >= object_.versions.size();
  }

  // Half of it on another core where it is long: while this runs, nobody else has work.
  void hash_names() {
    constexpr size_t kLong = 50000;
    const size_t size = result_.list.size(), half = size / 2;
    if (size < kLong) return hash_names(0, size);
    std::future<void> other;
    try {
      other = std::async(std::launch::async, [this, half] { hash_names(0, half); });
    } catch (const std::system_error&) {
      hash_names(0, half);
    }
    hash_names(half, size);
  }

  // In blocks, so that the strings of the next block are on their way while this one is worked on:
  // they are far larger than any cache.
  void hash_names(size_t first, size_t last) {
    constexpr size_t kBlock = 32;
    HugeVector<Reference>& list = result_.list;
    prefetch_names(first, std::min(first + kBlock, last));
    for (size_t begin = first; begin < last; begin += kBlock) {
      const size_t end = std::min(begin + kBlock, last);
      prefetch_names(end, std::min(end + kBlock, last));
      for (size_t i = begin; i < end; i++)
        list[i].name = elf::gnu_hash_of_string(object_.strings.from(list[i].name)) >> 1;
    }
  }

  void prefetch_names(size_t begin, size_t end) const {
    constexpr size_t kCacheLine = 64, kUsualLength = 4 * kCacheLine;
    for (size_t i = begin; i < end; i++)
      for (size_t at = 0; at < kUsualLength; at += kCacheLine)
        object_.strings.prefetch(result_.list[i].name + at);
  }

  const Object& object_;
  std::vector<uint8_t> seen_;  // by symbol: a bit per RefKind
  References result_;
  bool has_foreign_symbol_ = false, has_foreign_name_ = false, has_foreign_version_ = false;
  bool writes_elsewhere_ = false;
  elf::Phdr writable_{};  // the segment that was written last
};

}  // namespace

uint64_t count_relocations(const Object& object) {
  return object.rela.size() - std::min(object.rela.size(), object.relative_count) +
         object.jmprel.size();
}

References read_references(const Object& object) {
  MappedFile::populate(object.strings.slice(0, object.strings_size).value_or(Bytes()));
  return Reader(object).run();
}

}  // namespace cohabit
