// Where a compiled module keeps names.
//
// C, C++ and Cython up to 3.0: a NUL-terminated string each, in read-only data. The linker lets a
// string be the end of a longer one ("No module named a.b" and "a.b"), so addresses that the code
// computes are looked at too: LEA on x86-64, ADRP with ADD on AArch64.
//
// Cython since 3.1: one table of all strings of the module, without separators and mostly
// compressed (zlib, later LZSS), and an array with the length of each, as 32-bit numbers, beside
// it or made by code (stored_lengths.h). Unpacking imports zlib. Of 114 extension modules that
// cupy, scipy and numpy loaded in a test, half were such.
//
// mypyc: literals that hold a count and that many strings, each after its length; numbers are of
// seven bits a byte, high part first.
#include "imports/native_strings.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "base/each_place.h"
#include "imports/inflate.h"
#include "imports/lzss.h"
#include "imports/module_name.h"
#include "imports/native_symbols.h"
#include "imports/stored_lengths.h"

namespace cohabit::python {
namespace {

constexpr uint64_t kMaxData = 16 << 20;  // of read-only data and of code looked at, per file
constexpr uint64_t kMaxTable = 4 << 20;  // of one unpacked string table
constexpr uint64_t kMinTable = 32;
constexpr uint64_t kMaxLengths = 1 << 16;  // of strings in a table
constexpr size_t kMaxName = 200;
constexpr size_t kMaxUnsized = 8;        // packed texts without lengths beside them
constexpr size_t kMaxInflations = 4096;  // attempts: two bytes make a candidate
// A module that each module of Cython makes; with the end of the string.
constexpr std::string_view kCythonRuntime("cython_runtime\0", 15);

struct Region {
  Bytes bytes;
  uint64_t address = 0;
};

// In one pass: most strings are other texts, which their first space tells.
bool is_name(std::string_view text) {
  if (text.size() < 2 || text.size() > kMaxName || text.back() == '.') return false;
  bool may_be_dot = false;  // not in front, and not behind another
  for (const char c : text) {
    if (!is_name_character(c) || (c == '.' && !may_be_dot)) return false;
    may_be_dot = c != '.';
  }
  return true;
}

// The parts of the file that are mapped and have (or lack) these rights: by the section headers
// where there are any, which tell data from code more finely than segments do.
class Regions {
 public:
  Regions(const elf::Object& object, Bytes file) : object_(object), file_(file) {
    const elf::Ehdr header = file.read<elf::Ehdr>(0).value_or(elf::Ehdr{});
    if (header.e_shentsize != sizeof(elf::Shdr)) return;
    sections_ = file.table<elf::Shdr>(header.e_shoff, header.e_shnum).value_or(Table<elf::Shdr>());
    const elf::Shdr names = sections_[header.e_shstrndx];
    names_ = file.slice(names.sh_offset, names.sh_size).value_or(Bytes());
  }

  std::vector<Region> data() const { return collect(0); }
  std::vector<Region> code() const { return collect(elf::SHF_EXECINSTR); }

 private:
  std::vector<Region> collect(uint64_t executable) const {
    std::vector<Region> found;
    uint64_t left = kMaxData;
    const auto add = [&](uint64_t offset, uint64_t size, uint64_t address) {
      size = std::min(size, left);
      const std::optional<Bytes> bytes = file_.slice(offset, size);
      if (!bytes || size == 0) return;
      left -= size;
      found.push_back({*bytes, address});
    };
    for (uint64_t i = 0; i < sections_.size(); i++) {
      const elf::Shdr section = sections_[i];
      const uint64_t rights = elf::SHF_ALLOC | elf::SHF_WRITE | elf::SHF_EXECINSTR;
      if (section.sh_type == elf::SHT_PROGBITS &&
          (section.sh_flags & rights) == (elf::SHF_ALLOC | executable) && is_of_compiler(section))
        add(section.sh_offset, section.sh_size, section.sh_addr);
    }
    if (!sections_.empty()) return found;
    for (const elf::Phdr& segment : object_.segments) {
      // Without sections the data may be in the segment of the code.
      if ((segment.p_flags & elf::PF_W) || (executable && !(segment.p_flags & elf::PF_X))) continue;
      add(segment.p_offset, segment.p_filesz, segment.p_vaddr);
    }
    return found;
  }

  // Not code for GPUs and unwind tables, which are larger than all the rest.
  bool is_of_compiler(const elf::Shdr& section) const {
    const std::string_view name = names_.c_string(section.sh_name).value_or("");
    return name.starts_with(".rodata") || name.starts_with(".lrodata") || name.starts_with(".text");
  }

  const elf::Object& object_;
  Bytes file_;
  Table<elf::Shdr> sections_;
  Bytes names_;  // of sections
};

class Collector {
 public:
  NativeStrings result;
  std::vector<StringTable> tables;   // of Cython
  bool has_packed = false;           // one of them
  std::vector<std::string> unsized;  // such tables without their lengths

  void add(std::string_view text) {
    if (is_name(text) && seen_.emplace(text).second) result.names.emplace_back(text);
  }

 private:
  std::unordered_set<std::string> seen_;
};

// `wanted`: of four letters at least.
bool has_text(const std::vector<Region>& data, std::string_view wanted) {
  const char a = wanted[0], b = wanted[1], c = wanted[2], d = wanted[3];
  const auto begins = [=](const char* at) {
    return (at[0] == a) & (at[1] == b) & (at[2] == c) & (at[3] == d);
  };
  return std::any_of(data.begin(), data.end(), [&](const Region& region) {
    const std::string_view text = region.bytes.text();
    bool found = false;
    if (text.size() >= wanted.size())
      each_place(text, 0, text.size() - wanted.size() + 1, begins, [&](size_t at) {
        found = text.substr(at, wanted.size()) == wanted;
        return !found;
      });
    return found;
  });
}

// ---- mypyc

// Its name is part of those that it makes up ("__mypyc_env__"). In large files without it, chance
// makes literals of up to eight strings (68 MB of duckdb).
bool is_of_mypyc(const std::vector<Region>& data) {
  return has_text(data, "mypyc");
}

std::optional<uint64_t> take_number(std::string_view& text) {
  uint64_t value = 0;
  for (size_t i = 0; i < 4 && i < text.size(); i++) {
    const auto byte = static_cast<uint8_t>(text[i]);
    value = value << 7 | (byte & 127);
    if (byte < 128) {
      text.remove_prefix(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

void add_mypyc_literal(std::string_view text, Collector& out) {
  const std::optional<uint64_t> count = take_number(text);
  if (!count || *count == 0) return;
  std::vector<std::string_view> strings;
  while (!text.empty() && strings.size() < *count) {
    const std::optional<uint64_t> length = take_number(text);
    if (!length || *length > text.size()) return;
    strings.push_back(text.substr(0, *length));
    text.remove_prefix(*length);
  }
  if (!text.empty() || strings.size() != *count) return;
  out.result.compiled_python = true;
  for (const std::string_view string : strings) out.add(string);
}

// ---- Cython's tables

// The text cut into pieces of these lengths, if they fill it.
bool add_pieces(std::string_view text, const std::vector<uint32_t>& lengths, Collector& out) {
  uint64_t sum = 0;
  for (const uint32_t length : lengths) sum += length;
  if (sum != text.size()) return false;
  StringTable& table = out.tables.emplace_back();
  for (const uint32_t length : lengths) {
    out.add(text.substr(0, length));
    table.emplace_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return true;
}

// The array of lengths stands after the table or before it, aligned; zeros between do not matter.
std::vector<uint32_t> lengths_after(Bytes data, uint64_t at, uint64_t sum) {
  std::vector<uint32_t> lengths;
  while (sum > 0 && lengths.size() < kMaxLengths) {
    const std::optional<uint32_t> length = data.read<uint32_t>(at);
    if (!length || *length > sum) break;
    lengths.push_back(*length);
    sum -= *length;
    at += sizeof(uint32_t);
  }
  return lengths;
}

std::vector<uint32_t> lengths_before(Bytes data, uint64_t at, uint64_t sum) {
  std::vector<uint32_t> lengths;
  while (sum > 0 && at >= sizeof(uint32_t) && lengths.size() < kMaxLengths) {
    at -= sizeof(uint32_t);
    const uint32_t length = data.read<uint32_t>(at).value_or(0);
    if (length > sum) break;
    lengths.push_back(length);
    sum -= length;
  }
  std::reverse(lengths.begin(), lengths.end());
  return lengths;
}

uint64_t aligned(uint64_t offset, uint64_t address) {
  return offset + (0 - (address + offset)) % sizeof(uint32_t);
}

void add_cython_tables(const Region& region, Collector& out) {
  const std::string_view text = region.bytes.text();
  size_t attempts = 0;
  for (size_t at = text.find('x'); at != text.npos && at + 1 < text.size();
       at = text.find('x', at + 1)) {
    const auto flags = static_cast<uint8_t>(text[at + 1]);
    if (flags != 0x01 && flags != 0x5e && flags != 0x9c && flags != 0xda) continue;
    if (++attempts > kMaxInflations) return;
    const std::optional<Inflated> table = inflate_zlib(region.bytes.from(at), kMaxTable);
    if (!table || table->text.size() < kMinTable) continue;
    const uint64_t end = aligned(at + table->used, region.address);
    const uint64_t begin = at - (region.address + at) % sizeof(uint32_t);
    if (add_pieces(table->text, lengths_after(region.bytes, end, table->text.size()), out) ||
        add_pieces(table->text, lengths_before(region.bytes, begin, table->text.size()), out))
      out.result.compiled_python = out.has_packed = true;
    else if (out.unsized.size() < kMaxUnsized)
      out.unsized.push_back(table->text);
    at += table->used - 1;
  }
}

void add_stored_lengths(const std::vector<Region>& code, Collector& out) {
  for (const std::string& text : std::exchange(out.unsized, {}))
    for (const Region& region : code)
      if (add_pieces(text, stored_lengths(region.bytes, text.size()), out)) {
        out.has_packed = true;
        break;
      }
}

void add_lzss_table(const Region& region, Collector& out) {
  if (region.bytes.text().find("LZSS string data") == std::string_view::npos) return;
  StringTable strings = find_lzss_strings(region.bytes, region.address);
  for (const std::string& string : strings) out.add(string);
  out.tables.push_back(std::move(strings));
}

// ---- strings that code refers to

void add_string_at(const std::vector<Region>& data, uint64_t address, Collector& out) {
  for (const Region& region : data) {
    if (address - region.address >= region.bytes.size()) continue;
    const uint64_t offset = address - region.address;
    // A whole string has been seen.
    if (offset == 0 || region.bytes.text()[offset - 1] == '\0') return;
    const std::string_view text = region.bytes.text().substr(offset, kMaxName + 1);
    const size_t end = text.find('\0');
    if (end != text.npos && text.substr(0, end).find('.') != text.npos)
      out.add(text.substr(0, end));
    return;
  }
}

// A LEA of 64 bits with %rip.
void add_x86_references(const Region& code, const std::vector<Region>& data, Collector& out) {
  constexpr uint64_t kLength = 6;  // without its prefix
  if (code.bytes.size() < 1 + kLength) return;
  const auto is_lea = [](const char* at) {
    return ((at[-1] & '\xf8') == '\x48') & (at[0] == '\x8d') & ((at[1] & '\xc7') == '\x05');
  };
  const auto add = [&](size_t at) {
    const int64_t displacement = *code.bytes.read<int32_t>(at + 2);
    add_string_at(data, code.address + at + kLength + displacement, out);
    return true;
  };
  each_place(code.bytes.text(), 1, code.bytes.size() - kLength + 1, is_lea, add);
}

void add_aarch64_references(const Region& code, const std::vector<Region>& data, Collector& out) {
  for (uint64_t at = 0; at + 8 <= code.bytes.size(); at += 4) {
    const uint32_t adrp = code.bytes.read<uint32_t>(at).value_or(0);
    const uint32_t add = code.bytes.read<uint32_t>(at + 4).value_or(0);
    const bool is_pair = (adrp & 0x9f000000) == 0x90000000 && (add & 0xffc00000) == 0x91000000 &&
                         (adrp & 31) == ((add >> 5) & 31);
    if (!is_pair) continue;
    const uint64_t pages = (adrp >> 29 & 3) | (adrp >> 5 & 0x7ffff) << 2;
    const auto moved = static_cast<int64_t>(pages << 43) >> 31;  // 21 bits, signed, times 4096
    const uint64_t page = (code.address + at) & ~uint64_t{4095};
    add_string_at(data, page + static_cast<uint64_t>(moved) + (add >> 10 & 4095), out);
  }
}

// By the module that its code shares objects by, since 0.28; before, by what its import statements
// call, which handwritten code may call too; what mypyc makes is read likewise.
bool is_of_cython(const elf::Object& object, const std::vector<Region>& data, bool mypyc) {
  const auto is_statement = [](std::string_view name) {
    return name == "PyImport_ImportModuleLevelObject";
  };
  if (!refers_to(object, is_statement)) return has_text(data, kCythonRuntime);
  return mypyc || has_text(data, "cython") || has_text(data, "__pyx_");
}

}  // namespace

NativeStrings read_native_strings(const elf::Object& object, Bytes file) {
  Collector out;
  const Regions regions(object, file);
  const std::vector<Region> data = regions.data();
  const bool mypyc = is_of_mypyc(data);
  const bool cython = is_of_cython(object, data, mypyc);
  out.result.compiled_python = cython;
  for (const Region& region : data) {
    const std::string_view text = region.bytes.text();
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\0', begin), text.size());
      const std::string_view word = text.substr(begin, end - begin);
      out.add(word);
      if (mypyc && word.size() > 2) add_mypyc_literal(word, out);
      begin = end + 1;
    }
    if (cython) {
      add_cython_tables(region, out);
      add_lzss_table(region, out);
    }
  }
  const std::vector<Region> all_code = regions.code();
  if (object.machine == elf::EM_X86_64) add_stored_lengths(all_code, out);
  for (const Region& code : all_code) {
    if (object.machine == elf::EM_X86_64) add_x86_references(code, data, out);
    if (object.machine == elf::EM_AARCH64) add_aarch64_references(code, data, out);
  }
  if (cython) {
    out.result.code = read_initial_code(object, file, std::move(out.tables));
    auto& imported = out.result.code.imported;
    if (out.has_packed && std::find(imported.begin(), imported.end(), "zlib") == imported.end())
      imported.insert(imported.begin(), "zlib");
  } else if (!out.result.compiled_python)
    out.result.code = read_initial_code(object, file);
  return std::move(out.result);
}

// No name has a space.
constexpr std::string_view kCompiledPython = "compiled python";
constexpr std::string_view kCodeKnown = "code known";
constexpr std::string_view kStatementsKnown = "statements known";
constexpr std::string_view kImported = "imported ";
constexpr std::string_view kStated = "stated ";
constexpr std::string_view kMentioned = "mentioned ";

std::vector<std::string> words_of(NativeStrings strings) {
  std::vector<std::string> words = std::move(strings.names);
  if (strings.compiled_python) words.emplace_back(kCompiledPython);
  if (strings.code.known) words.emplace_back(kCodeKnown);
  if (strings.code.statements_known) words.emplace_back(kStatementsKnown);
  for (const std::string& name : strings.code.imported)
    words.push_back(std::string(kImported) + name);
  for (const std::string& name : strings.code.stated) words.push_back(std::string(kStated) + name);
  for (const std::string& name : strings.code.mentioned)
    words.push_back(std::string(kMentioned) + name);
  return words;
}

NativeStrings native_strings_of(const std::vector<std::string>& words) {
  NativeStrings strings;
  for (const std::string& word : words) {
    if (word == kCompiledPython) {
      strings.compiled_python = true;
    } else if (word == kCodeKnown) {
      strings.code.known = true;
    } else if (word == kStatementsKnown) {
      strings.code.statements_known = true;
    } else if (word.starts_with(kImported)) {
      strings.code.imported.push_back(word.substr(kImported.size()));
    } else if (word.starts_with(kStated)) {
      strings.code.stated.push_back(word.substr(kStated.size()));
    } else if (word.starts_with(kMentioned)) {
      strings.code.mentioned.push_back(word.substr(kMentioned.size()));
    } else {
      strings.names.push_back(word);
    }
  }
  return strings;
}

}  // namespace cohabit::python
