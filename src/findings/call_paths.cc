#include "findings/call_paths.h"

#include "findings/symbols.h"

#include <cstring>

namespace cohabit {
namespace {

constexpr uint32_t kPfX = 1;
constexpr uint64_t kMaxCode = 64 << 20;  // a library with more code than this is not looked into

// GLOB_DAT and JUMP_SLOT of the two processor ABIs; other relocations fill tables, not the GOT.
bool is_got_entry(uint16_t machine, uint32_t type) {
  return machine == elf::EM_X86_64 ? type == 6 || type == 7 : type == 1025 || type == 1026;
}

struct Code {
  uint64_t address;
  std::string_view bytes;
};

std::vector<Code> code_of(const Image& image) {
  std::vector<Code> code;
  uint64_t total = 0;
  for (const elf::Phdr& segment : image.elf.segments) {
    if (!(segment.p_flags & kPfX)) continue;
    const auto bytes = image.map.bytes().slice(segment.p_offset, segment.p_filesz);
    total += segment.p_filesz;
    if (bytes && total <= kMaxCode) code.push_back({segment.p_vaddr, bytes->text()});
  }
  return code;
}

int32_t read_i32(const char* at) {
  int32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

CallPaths::CallPaths(const Image& image) {
  const uint16_t machine = image.elf.machine;
  if (machine != elf::EM_X86_64 && machine != elf::EM_AARCH64) return;
  functions_ = elf::read_function_bounds(image.map.bytes());
  if (functions_.empty()) return;
  for (uint32_t i = 0; i < functions_.size(); i++)
    function_by_begin_.try_emplace(functions_[i].begin, i);
  known_ = true;
  read_got(image);
  read_exports(image);
  if (machine == elf::EM_X86_64) {
    scan_x86_64(image);
  } else {
    scan_aarch64(image);
  }
}

void CallPaths::read_got(const Image& image) {
  const auto enter = [&](const elf::Rela& relocation) {
    if (is_got_entry(image.elf.machine, relocation.type()))
      symbol_of_slot_.try_emplace(relocation.r_offset, relocation.symbol());
  };
  for (uint64_t i = 0; i < image.elf.jmprel.size(); i++) enter(image.elf.jmprel[i]);
  for (uint64_t i = image.elf.relative_count; i < image.elf.rela.size(); i++)
    enter(image.elf.rela[i]);
}

void CallPaths::read_exports(const Image& image) {
  const uint32_t count = symbol_count(image.elf);
  for (uint32_t i = 1; i < count; i++) {
    const elf::Sym symbol = image.elf.symbols[i];
    if (symbol.st_shndx == elf::SHN_UNDEF || symbol.bind() == elf::STB_LOCAL) continue;
    const auto found = function_by_begin_.find(symbol.st_value);
    if (found != function_by_begin_.end()) exported_as_[found->second].push_back(i);
  }
}

uint32_t CallPaths::function_at(uint64_t address) const {
  const elf::FunctionBounds* found = elf::function_at(functions_, address);
  return found && address < found->end ? static_cast<uint32_t>(found - functions_.data()) : kNone;
}

void CallPaths::add_edge(uint64_t site, uint64_t target) {
  const auto slot = symbol_of_slot_.find(target);
  const auto stub = symbol_of_stub_.find(target);
  const auto function = function_by_begin_.find(target);
  if (slot == symbol_of_slot_.end() && stub == symbol_of_stub_.end() &&
      function == function_by_begin_.end())
    return;
  const uint32_t from = function_at(site);
  if (from == kNone) return;
  if (slot != symbol_of_slot_.end()) {
    users_[slot->second].push_back(from);
  } else if (stub != symbol_of_stub_.end()) {
    users_[stub->second].push_back(from);
  } else if (function->second != from) {
    callers_[function->second].push_back(from);
  }
}

// First the PLT: `jmp *slot(%rip)` (ff 25), with endbr64 and bnd before it or not. Then every
// field.
void CallPaths::scan_x86_64(const Image& image) {
  const std::vector<Code> code = code_of(image);
  for (const Code& part : code) {
    for (size_t i = 0; i + 6 <= part.bytes.size(); i++) {
      if (part.bytes[i] != '\xff' || part.bytes[i + 1] != '\x25') continue;
      const uint64_t here = part.address + i;
      const auto slot = symbol_of_slot_.find(here + 6 + read_i32(&part.bytes[i + 2]));
      if (slot == symbol_of_slot_.end()) continue;
      for (const uint64_t before : {0, 1, 4, 5})
        symbol_of_stub_.try_emplace(here - before, slot->second);
    }
  }
  for (const Code& part : code) {
    const uint64_t end = part.address + part.bytes.size();
    for (size_t i = 1; i + 4 <= part.bytes.size(); i++) {
      const uint64_t target = part.address + i + 4 + read_i32(&part.bytes[i]);
      const auto before = static_cast<uint8_t>(part.bytes[i - 1]);
      // call, jmp, jcc, or a modrm byte of a %rip-relative operand (mod 00, rm 101)
      const bool branch = before == 0xe8 || before == 0xe9 || (before & 0xf0) == 0x80;
      if (!branch && (before & 0xc7) != 0x05) continue;
      if (branch && (target < part.address || target >= end)) continue;
      add_edge(part.address + i, target);
    }
  }
}

// BL and B reach functions and stubs directly; a stub is ADRP x16; LDR x17, [x16, #offset].
void CallPaths::scan_aarch64(const Image& image) {
  const auto page_of_adrp = [](uint64_t here, uint32_t word) {
    const int64_t immediate =
        (static_cast<int64_t>((word >> 5) & 0x7ffff) << 2) | ((word >> 29) & 3);
    return (here & ~uint64_t{0xfff}) + ((immediate << 43) >> 31);
  };
  const std::vector<Code> code = code_of(image);
  const auto for_each_word = [&](auto use) {
    for (const Code& part : code)
      for (size_t i = 0; i + 8 <= part.bytes.size(); i += 4)
        use(part.address + i, static_cast<uint32_t>(read_i32(&part.bytes[i])),
            static_cast<uint32_t>(read_i32(&part.bytes[i + 4])));
  };
  const auto slot_of_pair = [&](uint64_t here, uint32_t word, uint32_t next) -> uint64_t {
    const bool adrp = (word & 0x9f000000) == 0x90000000;
    const bool load = (next & 0xffc00000) == 0xf9400000 && ((next >> 5) & 31) == (word & 31);
    return adrp && load ? page_of_adrp(here, word) + ((next >> 10) & 0xfff) * 8 : 0;
  };
  for_each_word([&](uint64_t here, uint32_t word, uint32_t next) {
    const auto slot = symbol_of_slot_.find(slot_of_pair(here, word, next));
    if (slot == symbol_of_slot_.end()) return;
    if ((next & 31) == 17 && (word & 31) == 16) {
      symbol_of_stub_.try_emplace(here, slot->second);
      symbol_of_stub_.try_emplace(here - 4, slot->second);  // behind BTI
    } else {
      add_edge(here, slot->first);
    }
  });
  for_each_word([&](uint64_t here, uint32_t word, uint32_t) {
    if ((word & 0x7c000000) != 0x14000000) return;
    const int64_t words = static_cast<int32_t>(word << 6) >> 6;
    add_edge(here, here + words * 4);
  });
}

}  // namespace cohabit
