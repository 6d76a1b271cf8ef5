// Reading an ELF file as the dynamic loader does: through its program headers and dynamic section
// only, never through section headers, which a loadable file may lack or lie about.
//
// ld.so trusts these tables; we may not. Every table is cut to the bytes that its PT_LOAD segment
// has in the file, every chain goes forward only and is capped, and what is wrong is written down
// while the rest is still read.
#include "facts/elf/object.h"

#include <algorithm>

namespace cohabit::elf {
namespace {

constexpr uint64_t kMaxSegments = 4096;
constexpr uint64_t kMaxDynamicEntries = 1 << 16;
constexpr uint64_t kMaxVersionRecords = 1 << 16;
constexpr size_t kMaxDefects = 16;

struct Tables {
  uint64_t strtab = 0, strsz = 0, symtab = 0, hash = 0, gnu_hash = 0, versym = 0;
  uint64_t verneed = 0, verdef = 0;
  uint64_t rela = 0, relasz = 0, relacount = 0, jmprel = 0, pltrelsz = 0, pltrel = DT_RELA;
  // What elf_get_dynamic_info asserts; what constructors and jump slots are reached through.
  uint64_t relaent = 0, relrent = 0, pltgot = 0, init = 0, init_array = 0, init_arraysz = 0;
  uint64_t soname = 0, rpath = 0, runpath = 0;
  bool has_strtab = false, has_symtab = false, has_hash = false, has_gnu_hash = false;
  bool has_versym = false, has_verneed = false, has_verdef = false, has_rela = false;
  bool has_jmprel = false, has_soname = false, has_rpath = false, has_runpath = false;
  std::vector<std::pair<int64_t, uint64_t>> dependencies;
};

class Parser {
 public:
  explicit Parser(Bytes file) : file_(file) {}

  Object run() {
    const auto header = file_.read<Ehdr>(0);
    if (!header) {
      defect(0, "the file is shorter than an ELF header");
      return std::move(object_);
    }
    object_.machine = header->e_machine;
    object_.type = header->e_type;
    read_program_headers(*header);
    read_properties_of_notes();
    read_dynamic();
    return std::move(object_);
  }

 private:
  void defect(uint64_t offset, std::string what, bool fatal = false) {
    if (object_.defects.size() < kMaxDefects)
      object_.defects.push_back({offset, std::move(what), fatal});
  }

  void fatal_defect(uint64_t offset, std::string what) { defect(offset, std::move(what), true); }

  void read_program_headers(const Ehdr& header) {
    const auto table = file_.table<Phdr>(header.e_phoff, header.e_phnum);
    if (!table || header.e_phentsize != sizeof(Phdr)) {
      defect(header.e_phoff, "the program header table is not inside the file");
      return;
    }
    for (uint64_t i = 0; i < std::min(table->size(), kMaxSegments); i++) read_segment((*table)[i]);
    if (header.e_type == ET_DYN) check_room(header.e_phoff);
  }

  // ld.so reserves from the first PT_LOAD to the end of the last, and maps each where it says.
  void check_room(uint64_t at) {
    if (object_.segments.empty()) return;
    const Phdr& first = object_.segments.front();
    const Phdr& last = object_.segments.back();
    const uint64_t begin = page_start(first.p_vaddr), end = page_end(last.p_vaddr + last.p_memsz);
    for (const Phdr& segment : object_.segments)
      if (segment.p_vaddr < begin || page_end(segment.p_vaddr + segment.p_filesz) > end ||
          page_end(segment.p_vaddr + segment.p_memsz) > end)
        return fatal_defect(
            at, "a PT_LOAD segment lies outside of the room from the first to the last");
    const auto [address, size] = object_.relro;
    if (size != 0 && (address < begin || address + size < address || address + size > end))
      fatal_defect(at, "PT_GNU_RELRO lies outside of the PT_LOAD segments");
  }

  void read_segment(const Phdr& segment) {
    switch (segment.p_type) {
      case PT_LOAD:
        object_.segments.push_back(segment);
        if (!file_.contains(segment.p_offset, segment.p_filesz))
          defect(segment.p_offset, "a PT_LOAD segment goes past the end of the file");
        break;
      case PT_DYNAMIC:
        dynamic_ = segment;
        object_.has_dynamic = segment.p_filesz != 0 && segment.p_vaddr != 0;
        break;
      case PT_INTERP:
        object_.interpreter = file_.c_string(segment.p_offset).value_or(std::string_view());
        break;
      case PT_TLS:
        if (segment.p_memsz == 0) break;
        object_.tls = TlsSegment{segment.p_memsz, segment.p_align,
                                 segment.p_align ? segment.p_vaddr & (segment.p_align - 1) : 0};
        break;
      case PT_GNU_RELRO:
        object_.relro = {segment.p_vaddr, segment.p_memsz};
        break;
      case PT_GNU_STACK:
        object_.stack =
            segment.p_flags & PF_X ? StackDemand::kExecutable : StackDemand::kNonExecutable;
        break;
      case PT_NOTE:
        read_notes(segment);
        break;
      default:
        break;
    }
  }

  void read_notes(const Phdr& segment) {
    if (const auto notes = file_.slice(segment.p_offset, segment.p_filesz))
      if (std::string id = read_build_id(*notes); !id.empty()) object_.build_id = std::move(id);
    if (segment.p_align == sizeof(uint64_t)) property_notes_ = segment;
  }

  // The last of the segments decides: ld.so reads them backwards, and one only. On AArch64 none.
  void read_properties_of_notes() {
    if (!property_notes_ || object_.machine != EM_X86_64) return;
    const Bytes rest = at_address(property_notes_->p_vaddr, nullptr);
    const uint64_t size = std::min(rest.size(), property_notes_->p_memsz);
    object_.properties = read_properties(*rest.slice(0, size));
  }

  // The bytes of the file from a virtual address to the end of its segment. Without a name of the
  // table it is no defect that there are none.
  Bytes at_address(uint64_t address, const char* table) {
    for (const Phdr& segment : object_.segments) {
      if (address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz) continue;
      const uint64_t inside = address - segment.p_vaddr;
      if (segment.p_offset > file_.size() || inside > file_.size() - segment.p_offset) break;
      const Bytes rest = file_.from(segment.p_offset + inside);
      return *rest.slice(0, std::min(rest.size(), segment.p_filesz - inside));
    }
    if (table)
      fatal_defect(address, std::string(table) + " is not inside a loaded part of the file");
    return {};
  }

  void read_dynamic() {
    if (!object_.has_dynamic) return;
    // As ld.so: by address, to DT_NULL, whatever p_offset and p_filesz say.
    const Bytes bytes = at_address(dynamic_.p_vaddr, "PT_DYNAMIC");
    if (dynamic_.p_filesz > bytes.size())
      defect(dynamic_.p_vaddr, "the dynamic section goes past the end of its segment");
    const auto entries = whole_table<Dyn>(bytes);
    const uint64_t count = std::min(entries.size(), kMaxDynamicEntries);
    for (uint64_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++) read_entry(entries[i]);
    read_strings();
    read_symbols();
    read_versions();
    read_relocations();
    check_what_is_trusted();
  }

  // The segment that is in memory at an address, null if none is.
  const Phdr* mapped(uint64_t address) const {
    for (const Phdr& segment : object_.segments)
      if (address >= page_start(segment.p_vaddr) &&
          address - page_start(segment.p_vaddr) <
              page_end(segment.p_vaddr + segment.p_memsz) - page_start(segment.p_vaddr))
        return &segment;
    return nullptr;
  }

  // What ld.so asserts (elf/get-dynamic-info.h) or goes through without a look.
  void check_what_is_trusted() {
    const uint64_t at = dynamic_.p_offset;
    const auto demand = [&](bool holds, const char* what) {
      if (!holds) fatal_defect(at, what);
    };
    demand(!tables_.has_rela || tables_.relaent == sizeof(Rela), "DT_RELAENT is not 24");
    demand(!object_.has_relr || tables_.relrent == sizeof(uint64_t), "DT_RELRENT is not 8");
    demand(tables_.pltrel == static_cast<uint64_t>(DT_RELA), "DT_PLTREL is not DT_RELA");
    demand(tables_.has_strtab, "there is no DT_STRTAB");
    demand(tables_.has_symtab, "there is no DT_SYMTAB");
    demand(!tables_.has_jmprel || tables_.pltgot == 0 || mapped(tables_.pltgot),
           "DT_PLTGOT is not inside the library");
    const Phdr* init = mapped(tables_.init);
    demand(tables_.init == 0 || (init && (init->p_flags & PF_X)), "DT_INIT leads to no code");
    demand(tables_.init_array == 0 || tables_.init_arraysz == 0 || mapped(tables_.init_array),
           "DT_INIT_ARRAY is not inside the library");
  }

  void read_entry(const Dyn& entry) {
    const uint64_t value = entry.d_val;
    switch (entry.d_tag) {
      case DT_NEEDED:
      case DT_AUXILIARY:
      case DT_FILTER:
        tables_.dependencies.emplace_back(entry.d_tag, value);
        break;
      case DT_STRTAB:
        tables_.strtab = value, tables_.has_strtab = true;
        break;
      case DT_STRSZ:
        tables_.strsz = value;
        break;
      case DT_SYMTAB:
        tables_.symtab = value, tables_.has_symtab = true;
        break;
      case DT_HASH:
        tables_.hash = value, tables_.has_hash = true;
        break;
      case DT_GNU_HASH:
        tables_.gnu_hash = value, tables_.has_gnu_hash = true;
        break;
      case DT_VERSYM:
        tables_.versym = value, tables_.has_versym = true;
        break;
      case DT_VERNEED:
        tables_.verneed = value, tables_.has_verneed = true;
        break;
      case DT_VERDEF:
        tables_.verdef = value, tables_.has_verdef = true;
        break;
      case DT_RELA:
        tables_.rela = value, tables_.has_rela = true;
        break;
      case DT_RELASZ:
        tables_.relasz = value;
        break;
      case DT_RELAENT:
        tables_.relaent = value;
        break;
      case DT_RELRENT:
        tables_.relrent = value;
        break;
      case DT_PLTGOT:
        tables_.pltgot = value;
        break;
      case DT_INIT_ARRAYSZ:
        tables_.init_arraysz = value;
        break;
      case DT_RELACOUNT:
        tables_.relacount = value;
        break;
      case DT_JMPREL:
        tables_.jmprel = value, tables_.has_jmprel = true;
        break;
      case DT_PLTRELSZ:
        tables_.pltrelsz = value;
        break;
      case DT_PLTREL:
        tables_.pltrel = value;
        break;
      case DT_SONAME:
        tables_.soname = value, tables_.has_soname = true;
        break;
      case DT_RPATH:
        tables_.rpath = value, tables_.has_rpath = true;
        break;
      case DT_RUNPATH:
        tables_.runpath = value, tables_.has_runpath = true;
        break;
      case DT_SYMBOLIC:
        object_.symbolic = true;
        break;
      case DT_INIT:
        tables_.init = value;
        object_.has_constructor = true;
        break;
      case DT_INIT_ARRAY:
        tables_.init_array = value;
        object_.has_constructor = true;
        break;
      case DT_TEXTREL:
        object_.textrel = true;
        break;
      case DT_BIND_NOW:
        object_.bind_now = true;
        break;
      case DT_AUDIT:
      case DT_DEPAUDIT:
        object_.names_auditors = true;
        break;
      case DT_RELR:
        object_.has_relr = true;
        break;
      case DT_FLAGS:
        object_.flags = value;
        object_.symbolic |= (value & DF_SYMBOLIC) != 0;
        object_.textrel |= (value & DF_TEXTREL) != 0;
        object_.bind_now |= (value & DF_BIND_NOW) != 0;
        break;
      case DT_FLAGS_1:
        object_.flags_1 = value;
        object_.bind_now |= (value & DF_1_NOW) != 0;
        break;
      case DT_AARCH64_VARIANT_PCS:
        object_.variant_pcs = object_.machine == EM_AARCH64;
        break;
      default:
        break;
    }
  }

  void read_strings() {
    if (tables_.has_strtab) {
      const Bytes rest = at_address(tables_.strtab, "DT_STRTAB");
      // ld.so does not look at DT_STRSZ, so neither do we beyond saying that it lies.
      if (tables_.strsz > rest.size())
        defect(tables_.strtab, "DT_STRSZ goes past the end of its segment");
      // What follows the last NUL can be nobody's name; so every name has an end.
      object_.strings = rest.slice(0, rest.text().rfind('\0') + 1).value_or(Bytes());
      object_.strings_size = tables_.strsz;
    }
    const auto text = [&](uint64_t offset) {
      const auto string = object_.strings.c_string(offset);
      if (!string) defect(offset, "a name is not inside the string table");
      return string.value_or(std::string_view());
    };
    if (tables_.has_soname) object_.soname = text(tables_.soname);
    if (tables_.has_runpath) object_.runpath = text(tables_.runpath);
    if (tables_.has_rpath) object_.rpath = text(tables_.rpath);
    for (const auto& [tag, offset] : tables_.dependencies)
      object_.dependencies.push_back({tag, text(offset)});
  }

  template <class T>
  Table<T> whole_table(Bytes bytes) {
    return *bytes.table<T>(0, bytes.size() / sizeof(T));
  }

  void read_symbols() {
    if (tables_.has_symtab)
      object_.symbols = whole_table<Sym>(at_address(tables_.symtab, "DT_SYMTAB"));
    if (tables_.has_versym)
      object_.versym = whole_table<uint16_t>(at_address(tables_.versym, "DT_VERSYM"));
    if (tables_.has_gnu_hash) read_gnu_hash(at_address(tables_.gnu_hash, "DT_GNU_HASH"));
    if (tables_.has_hash) read_sysv_hash(at_address(tables_.hash, "DT_HASH"));
  }

  void read_gnu_hash(Bytes bytes) {
    const auto bucket_count = bytes.read<uint32_t>(0), symbol_offset = bytes.read<uint32_t>(4),
               bloom_size = bytes.read<uint32_t>(8), bloom_shift = bytes.read<uint32_t>(12);
    const auto bad = [&] {
      fatal_defect(tables_.gnu_hash, "DT_GNU_HASH does not fit its segment");
    };
    if (!bucket_count || !symbol_offset || !bloom_size || !bloom_shift) return bad();
    const auto bloom = bytes.table<uint64_t>(16, *bloom_size);
    const uint64_t buckets_at = 16 + uint64_t{*bloom_size} * 8;
    const auto buckets = bytes.table<uint32_t>(buckets_at, *bucket_count);
    if (!bloom || !buckets) return bad();
    const Bytes chain = bytes.from(buckets_at + uint64_t{*bucket_count} * 4);
    const bool is_filter = *bloom_size != 0 && (*bloom_size & (*bloom_size - 1)) == 0;
    if (!is_filter)  // asserted in _dl_setup_hash; without a word it reads far away
      fatal_defect(tables_.gnu_hash,
                   "the Bloom filter of DT_GNU_HASH has no power of two of words");
    object_.gnu_hash = GnuHash{*bucket_count,     *symbol_offset,
                               *bloom_shift & 31, is_filter ? *bloom : Table<uint64_t>(),
                               *buckets,          whole_table<uint32_t>(chain)};
  }

  void read_sysv_hash(Bytes bytes) {
    const auto bucket_count = bytes.read<uint32_t>(0), chain_count = bytes.read<uint32_t>(4);
    if (bucket_count && chain_count) {
      const auto buckets = bytes.table<uint32_t>(8, *bucket_count);
      const auto chain = bytes.table<uint32_t>(8 + uint64_t{*bucket_count} * 4, *chain_count);
      if (buckets && chain) {
        object_.sysv_hash = SysvHash{*buckets, *chain};
        return;
      }
    }
    defect(tables_.hash, "DT_HASH does not fit its segment", !tables_.has_gnu_hash);
  }

  void read_needs() {
    const Bytes bytes = at_address(tables_.verneed, "DT_VERNEED");
    uint64_t at = 0, records = 0;
    while (records++ < kMaxVersionRecords) {
      const auto need = bytes.read<Verneed>(at);
      if (!need) return fatal_defect(tables_.verneed + at, "DT_VERNEED goes past its segment");
      if (at == 0) object_.version_needs_record = need->vn_version;
      uint64_t aux_at = at + need->vn_aux;
      while (records++ < kMaxVersionRecords) {
        const auto aux = bytes.read<Vernaux>(aux_at);
        if (!aux) return fatal_defect(tables_.verneed + aux_at, "DT_VERNEED goes past its segment");
        if (std::max(need->vn_file, aux->vna_name) >= object_.strings.size())
          fatal_defect(tables_.verneed + aux_at,
                       "a name of DT_VERNEED is not inside the string table");
        object_.version_needs.push_back(
            {object_.string(need->vn_file), object_.string(aux->vna_name), aux->vna_hash,
             static_cast<uint16_t>(aux->vna_other & kVersionIndex),
             (aux->vna_other & kVersionHidden) != 0, (aux->vna_flags & VER_FLG_WEAK) != 0});
        if (aux->vna_next == 0) break;
        aux_at += aux->vna_next;
      }
      if (need->vn_next == 0) return;
      at += need->vn_next;
    }
    defect(tables_.verneed, "DT_VERNEED has too many records");
  }

  void read_definitions() {
    const Bytes bytes = at_address(tables_.verdef, "DT_VERDEF");
    uint64_t at = 0;
    for (uint64_t records = 0; records < kMaxVersionRecords; records++) {
      const auto def = bytes.read<Verdef>(at);
      if (!def) return fatal_defect(tables_.verdef + at, "DT_VERDEF goes past its segment");
      const auto aux = bytes.read<Verdaux>(at + def->vd_aux);
      object_.version_definitions.push_back({aux ? object_.string(aux->vda_name) : "", def->vd_hash,
                                             static_cast<uint16_t>(def->vd_ndx & kVersionIndex),
                                             (def->vd_flags & VER_FLG_BASE) != 0, def->vd_version});
      if (def->vd_next == 0) return;
      at += def->vd_next;
    }
    defect(tables_.verdef, "DT_VERDEF has too many records");
  }

  // l_versions as _dl_check_map_versions builds it: needs first, definitions over them.
  void read_versions() {
    if (tables_.has_verneed) read_needs();
    if (tables_.has_verdef) read_definitions();
    uint16_t highest = 0;
    for (const VersionNeed& need : object_.version_needs) highest = std::max(highest, need.index);
    for (const VersionDefinition& def : object_.version_definitions)
      highest = std::max(highest, def.index);
    if (highest == 0) return;
    object_.versions.resize(highest + 1);
    for (const VersionNeed& need : object_.version_needs)
      object_.versions[need.index] = {need.name, need.file, need.hash, need.hidden};
    for (const VersionDefinition& def : object_.version_definitions) {
      if (def.base) continue;
      Version& version = object_.versions[def.index];
      version.name = def.name;
      version.file = {};
      version.hash = def.hash;
    }
  }

  Table<Rela> relocation_table(uint64_t address, uint64_t size, const char* name) {
    if (size == 0) return {};
    const Bytes rest = at_address(address, name);
    if (size > rest.size()) fatal_defect(address, std::string(name) + " goes past its segment");
    return *rest.table<Rela>(0, std::min(size, rest.size()) / sizeof(Rela));
  }

  void read_relocations() {
    if (tables_.has_rela) object_.rela = relocation_table(tables_.rela, tables_.relasz, "DT_RELA");
    if (tables_.has_jmprel && tables_.pltrel == static_cast<uint64_t>(DT_RELA))
      object_.jmprel = relocation_table(tables_.jmprel, tables_.pltrelsz, "DT_JMPREL");
    object_.relative_count = std::min(tables_.relacount, object_.rela.size());
    check_relative();
  }

  // elf_machine_rela_relative of sysdeps/x86_64/dl-machine.h asserts the type; elsewhere it is
  // taken for granted. The first and the last are looked at: all of them are many pages.
  void check_relative() {
    const uint64_t count = object_.relative_count;
    if (count == 0 || object_.machine != EM_X86_64) return;
    for (const uint64_t i : {uint64_t{0}, count - 1}) {
      const uint32_t type = object_.rela[i].type();
      if (type != R_X86_64_RELATIVE && type != R_X86_64_RELATIVE64)
        return fatal_defect(tables_.rela + i * sizeof(Rela),
                            "DT_RELACOUNT counts a relocation that is not relative");
    }
  }

  Bytes file_;
  Object object_;
  Phdr dynamic_{};
  std::optional<Phdr> property_notes_;
  Tables tables_;
};

HeaderCheck fatal(const char* message) {
  return {HeaderVerdict::kFatal, message};
}

// e_ident[EI_OSABI] and [EI_ABIVERSION] as sysdeps/gnu/ldsodefs.h of glibc accepts them.
bool acceptable_abi(const uint8_t* ident) {
  constexpr uint8_t kSysv = 0, kGnu = 3, kMaxAbiVersion = 4;
  return (ident[7] == kSysv && ident[8] == 0) || (ident[7] == kGnu && ident[8] < kMaxAbiVersion);
}

HeaderCheck check_rest_of_ident(const uint8_t* ident) {
  constexpr uint8_t kLittleEndian = 1, kCurrent = 1;
  if (ident[5] != kLittleEndian) return fatal("ELF file data encoding not little-endian");
  if (ident[6] != kCurrent) return fatal("ELF file version ident does not match current one");
  if (ident[7] != 0 && ident[7] != 3) return fatal("ELF file OS ABI invalid");
  if (!acceptable_abi(ident)) return fatal("ELF file ABI version invalid");
  for (int i = 9; i < 16; i++)
    if (ident[i] != 0) return fatal("nonzero padding in e_ident");
  return {};
}

// open_verify of elf/dl-load.c. What is wrong with the identification of a file of another machine
// does not matter: it is passed over. (Measured: Debian's 2.36, 2.41 and 2.43.)
HeaderCheck check_ident(const Ehdr& header, uint16_t machine) {
  constexpr uint8_t kClass64 = 2;
  if (std::memcmp(header.e_ident, "\177ELF", 4) != 0) return fatal("invalid ELF header");
  if (header.e_ident[4] != kClass64) return {HeaderVerdict::kOtherClass, ""};
  HeaderCheck check = check_rest_of_ident(header.e_ident);
  if (check.verdict != HeaderVerdict::kLoadable && header.e_machine != machine)
    return {HeaderVerdict::kOtherMachine, ""};
  return check;
}

}  // namespace

const Version* Object::version_of(uint32_t index) const {
  if (versym.empty() || versions.empty()) return nullptr;
  const uint16_t version = versym[index] & kVersionIndex;
  if (version >= versions.size() || versions[version].hash == 0) return nullptr;
  return &versions[version];
}

HeaderCheck check_header(Bytes file, uint16_t machine) {
  const auto header = file.read<Ehdr>(0);
  if (!header) return fatal("file too short");
  if (HeaderCheck check = check_ident(*header, machine); check.verdict != HeaderVerdict::kLoadable)
    return check;
  if (header->e_version != 1) return fatal("ELF file version does not match current one");
  if (header->e_machine != machine) return {HeaderVerdict::kOtherMachine, ""};
  if (header->e_type != ET_DYN && header->e_type != ET_EXEC)
    return fatal("only ET_DYN and ET_EXEC can be loaded");
  if (header->e_phentsize != sizeof(Phdr))
    return fatal("ELF file's phentsize not the expected size");
  if (header->e_phoff > INT64_MAX) return fatal("cannot read file data: Invalid argument");
  if (!file.table<Phdr>(header->e_phoff, header->e_phnum)) return fatal("cannot read file data");
  return {};
}

Object parse(Bytes file) {
  return Parser(file).run();
}

// h = h*33 + c over the name. Four characters a step: the multiplications of one step do not wait
// for each other, which is what makes hashing 40 MB of mangled names cheap.
uint32_t gnu_hash(std::string_view name) {
  uint32_t h = 5381;
  const auto* p = reinterpret_cast<const uint8_t*>(name.data());
  size_t n = name.size();
  for (; n >= 4; n -= 4, p += 4)
    h = h * (33u * 33 * 33 * 33) + p[0] * (33u * 33 * 33) + p[1] * (33u * 33) + p[2] * 33u + p[3];
  for (; n > 0; n--, p++) h = h * 33 + *p;
  return h;
}

namespace {

constexpr uint32_t power_of_33(unsigned n) {
  return n == 0 ? 1 : 33 * power_of_33(n - 1);
}

// The hash of eight characters, the first in the lowest byte, from h = 0: neighbours are joined in
// 16-bit lanes, then in 32-bit lanes, which none of the sums can leave.
uint32_t hash_eight(uint64_t word) {
  constexpr uint64_t kBytes = 0x00ff00ff00ff00ff, kPairs = 0x0000ffff0000ffff;
  const uint64_t pairs = (word & kBytes) * 33 + (word >> 8 & kBytes);
  const uint64_t fours = (pairs & kPairs) * power_of_33(2) + (pairs >> 16 & kPairs);
  return static_cast<uint32_t>(fours) * power_of_33(4) + static_cast<uint32_t>(fours >> 32);
}

}  // namespace

// Looks for the end and hashes in one pass over the string: it is in no cache, and reading it once
// is most of the cost.
uint32_t gnu_hash_of_string(Bytes text) {
  constexpr uint32_t kStart = 5381;
  constexpr uint32_t kPowers[] = {1,
                                  power_of_33(1),
                                  power_of_33(2),
                                  power_of_33(3),
                                  power_of_33(4),
                                  power_of_33(5),
                                  power_of_33(6),
                                  power_of_33(7)};
  const std::string_view bytes = text.text();
  uint32_t h = kStart;
  size_t at = 0;
  for (; bytes.size() - at >= 8; at += 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    // The lowest bit that is set belongs to the first zero byte.
    const uint64_t zeros = (word - 0x0101010101010101) & ~word & 0x8080808080808080;
    if (zeros == 0) {
      h = h * power_of_33(8) + hash_eight(word);
      continue;
    }
    const auto left = static_cast<unsigned>(__builtin_ctzll(zeros)) / 8;
    return left == 0 ? h : h * kPowers[left] + hash_eight(word << (64 - 8 * left));
  }
  for (; at < bytes.size(); at++) {
    if (bytes[at] == 0) return h;
    h = h * 33 + static_cast<uint8_t>(bytes[at]);
  }
  return kStart;
}

uint32_t sysv_hash(std::string_view name) {
  uint32_t h = 0;
  for (const char c : name) {
    h = (h << 4) + static_cast<uint8_t>(c);
    h ^= (h >> 24) & 0xf0;
  }
  return h & 0x0fffffff;
}

}  // namespace cohabit::elf
