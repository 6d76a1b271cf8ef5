#include "findings/member_code.h"

#include <algorithm>
#include <unordered_set>

#include "facts/elf/addresses.h"
#include "findings/symbols.h"

namespace cohabit {
namespace {

using elf::Instruction;

constexpr uint64_t kLongestFunction = 64 << 10;  // bytes that are looked at of one
constexpr uint64_t kMostCode = 32 << 20;         // of one library
constexpr size_t kMostFollowed = 256;            // functions that one calls, and these in turn
constexpr size_t kMostOffsets = 4096;            // of one function, with its helpers

template <class T>
void make_set(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

bool is_function(const elf::Sym& symbol) {
  return symbol.type() == elf::STT_FUNC && symbol.st_shndx != elf::SHN_UNDEF;
}

}  // namespace

MemberCode::MemberCode(const elf::Object& elf, Bytes file)
    : elf_(elf), file_(file.text()), bounds_(elf::read_function_bounds(file)) {
  for (uint64_t i = 0; i < elf_.jmprel.size(); i++) read_relocation(elf_.jmprel[i]);
  for (uint64_t i = 0; i < elf_.rela.size(); i++) read_relocation(elf_.rela[i]);
  std::sort(pointers_.begin(), pointers_.end(),
            [](const Pointer& a, const Pointer& b) { return a.place < b.place; });
  const uint32_t count = symbol_count(elf_);
  for (uint32_t i = 1; i < count; i++) {
    const elf::Sym symbol = elf_.symbols[i];
    if (!is_function(symbol)) continue;
    uint64_t& size = exported_[symbol.st_value];
    size = std::max(size, uint64_t{symbol.st_size});
  }
}

// What a place in memory that is filled with the address of this symbol leads to. Functions of
// others are told from their data by their use alone.
MemberCode::Slot MemberCode::slot_of(uint32_t index) const {
  const elf::Sym symbol = elf_.symbols[index];
  const bool is_defined = symbol.st_shndx != elf::SHN_UNDEF;
  if (is_function(symbol)) return {Kind::kFunction, symbol.st_value};
  if (symbol.type() == elf::STT_GNU_IFUNC) return {Kind::kUnknown};
  const elf::Version* version = elf_.version_of(index);
  if (!is_defined) return {version && version->hash != 0 ? Kind::kForeign : Kind::kUnknown};
  // Assembly may leave out that it is a function.
  if (is_code(symbol.st_value)) return {Kind::kFunction, symbol.st_value};
  return {Kind::kData, symbol.st_value};
}

bool MemberCode::is_state(const Slot& slot) const {
  const bool is_own_function = slot.kind == Kind::kFunction;
  return !is_own_function && (slot.kind != Kind::kData || is_writable(slot.address));
}

void MemberCode::read_relocation(const elf::Rela& relocation) {
  const uint64_t place = relocation.r_offset;
  switch (relocation.type()) {
    case elf::R_X86_64_GLOB_DAT:
    case elf::R_X86_64_JUMP_SLOT:
      slots_.try_emplace(place, slot_of(relocation.symbol()));
      return;
    case elf::R_X86_64_DTPMOD64:
    case elf::R_X86_64_TPOFF64:
    case elf::R_X86_64_TLSDESC:
      slots_.try_emplace(place, Slot{Kind::kState});
      return;
    case elf::R_X86_64_RELATIVE:
      if (is_relro(place))
        pointers_.push_back({place, is_writable(static_cast<uint64_t>(relocation.r_addend))});
      return;
    case elf::R_X86_64_64:
      if (is_relro(place)) pointers_.push_back({place, is_state(slot_of(relocation.symbol()))});
      return;
    default:
      return;
  }
}

std::string_view MemberCode::bytes_at(uint64_t address, uint64_t size) const {
  for (const elf::Phdr& segment : elf_.segments) {
    const uint64_t in = address - segment.p_vaddr;
    if (!(segment.p_flags & elf::PF_X) || in >= segment.p_filesz) continue;
    const uint64_t offset = segment.p_offset + in;
    if (offset >= file_.size()) return {};
    return file_.substr(offset, std::min(size, segment.p_filesz - in));
  }
  return {};
}

// When relocation is over.
bool MemberCode::is_writable(uint64_t address) const {
  return !is_relro(address) && elf::has_rights(elf_, address, elf::PF_W);
}

// By the pointers that stand there or little behind: where a table ends is not told.
bool MemberCode::leads_to_state(uint64_t address) const {
  constexpr uint64_t kTable = 1024;
  if (is_writable(address)) return true;
  const auto is_before = [](const Pointer& one, uint64_t place) { return one.place < place; };
  for (auto next = std::lower_bound(pointers_.begin(), pointers_.end(), address, is_before);
       next != pointers_.end() && next->place - address < kTable; ++next)
    if (next->to_state) return true;
  return false;
}

void MemberCode::follow_slot(const Slot& slot, bool is_branch, Function& function) const {
  if (slot.kind == Kind::kFunction) function.callees.push_back(slot.address);
  const bool to_state = slot.kind == Kind::kData && leads_to_state(slot.address);
  if (to_state || slot.kind == Kind::kState || (slot.kind == Kind::kForeign && !is_branch))
    function.reached.keeps_state = true;
  if (slot.kind == Kind::kUnknown) function.reached.is_whole = false;
}

// A function, a part of one (.cold), or a stub of the PLT: `jmp *slot(%rip)`, behind endbr64 or
// not.
void MemberCode::follow(uint64_t target, Function& function) const {
  if (exported_.contains(target)) {
    function.callees.push_back(target);
    return;
  }
  constexpr std::string_view kEndbr = "\xf3\x0f\x1e\xfa";
  constexpr size_t kStub = 16;
  std::string_view stub = bytes_at(target, kStub);
  const size_t skipped = stub.starts_with(kEndbr) ? kEndbr.size() : 0;
  const Instruction jump = elf::read_instruction(stub, skipped);
  if (jump.branches_through && jump.from_instruction) {
    const auto slot = slots_.find(target + skipped + jump.length +
                                  static_cast<uint64_t>(int64_t{jump.displacement}));
    if (slot != slots_.end()) return follow_slot(slot->second, true, function);
  }
  const elf::FunctionBounds* part = elf::function_at(bounds_, target);
  if (part && target - part->begin < size_of(part->begin)) {
    function.callees.push_back(part->begin);
  } else {
    function.reached.is_whole = false;
  }
}

void MemberCode::look_at_target(const Instruction& one, uint64_t target, Function& function) const {
  if (const auto slot = slots_.find(target); slot != slots_.end()) {
    follow_slot(slot->second, one.branches_through, function);
  } else if (is_code(target) && !is_writable(target)) {
    if (one.operand == Instruction::kAddress) follow(target, function);
  } else if (one.branches_through) {
    function.reached.is_whole = false;
  } else {
    function.reached.keeps_state |= leads_to_state(target);
    if (one.operand == Instruction::kAddress) function.tables.push_back(target);
  }
}

// Jump tables: what a `switch` leads to may be a part that lies elsewhere (.cold). Compilers write
// 32-bit distances from the table's start.
void MemberCode::follow_tables(uint64_t begin, uint64_t size, Function& function) const {
  constexpr uint64_t kMostEntries = 1024;
  for (const uint64_t table : function.tables) {
    const auto offset = elf::offset_of(elf_, table);
    if (!offset || elf::has_rights(elf_, table, elf::PF_W)) continue;
    for (uint64_t i = 0; i < kMostEntries; i++) {
      const auto distance = Bytes(file_).read<int32_t>(*offset + i * sizeof(int32_t));
      if (!distance) break;
      const uint64_t target = table + static_cast<uint64_t>(int64_t{*distance});
      if (!is_code(target)) break;
      if (target - begin >= size) follow(target, function);
    }
  }
}

void MemberCode::look_at_operand(const Instruction& one, uint64_t next, Function& function) const {
  constexpr int32_t kStackGuard = 0x28;
  if (one.operand == Instruction::kNone) return;
  const bool has_base = one.base != Instruction::kNoRegister;
  if (one.in_thread) {
    function.reached.keeps_state |= has_base || one.displacement != kStackGuard;
  } else if (one.from_instruction) {
    look_at_target(one, next + static_cast<uint64_t>(int64_t{one.displacement}), function);
  } else if (!has_base && one.operand == Instruction::kTouched) {
    function.reached.is_whole = false;  // an address that is no position-independent code's
  }
}

// Up to its end or what is no instruction.
MemberCode::Function MemberCode::read_function(uint64_t address, uint64_t size) {
  Function function;
  MembersReached& reached = function.reached;
  std::vector<int32_t>& offsets = reached.offsets;
  std::vector<int32_t> in_frame;
  bool has_frame = false, jumps_by_register = false;
  const std::string_view code = bytes_at(address, std::min(size, kLongestFunction));
  looked_at_ += code.size();
  reached.is_whole = !code.empty() && code.size() == size && looked_at_ <= kMostCode;
  if (looked_at_ > kMostCode) return function;
  for (size_t at = 0; at < code.size();) {
    const Instruction one = elf::read_instruction(code, at);
    if (one.length == 0) {
      reached.is_whole = false;
      break;
    }
    at += one.length;
    has_frame |= one.sets_frame;
    jumps_by_register |= one.branches_by_register;
    // To reckon its distance from something else (-mcmodel=large).
    const uint64_t place = address + at + static_cast<uint64_t>(int64_t{one.displacement});
    if (one.operand == Instruction::kAddress && one.from_instruction && place - address < size)
      reached.is_whole = false;
    look_at_operand(one, address + at, function);
    if (one.branches) {
      const uint64_t target = address + at + static_cast<uint64_t>(int64_t{one.branch});
      if (target - address >= size) follow(target, function);
    }
    if (one.operand != Instruction::kTouched || one.has_index || one.is_scaled || one.in_thread ||
        one.displacement < 0 || one.base == Instruction::kNoRegister ||
        one.base == Instruction::kStackPointer)
      continue;
    (one.base == Instruction::kFramePointer ? in_frame : offsets).push_back(one.displacement);
  }
  if (jumps_by_register) follow_tables(address, size, function);
  if (!has_frame) offsets.insert(offsets.end(), in_frame.begin(), in_frame.end());
  make_set(offsets);
  make_set(function.callees);
  if (offsets.size() > kMostOffsets) {
    offsets.resize(kMostOffsets);
    reached.is_whole = false;
  }
  return function;
}

// 0: not known.
uint64_t MemberCode::size_of(uint64_t address) const {
  const auto exported = exported_.find(address);
  if (exported != exported_.end() && exported->second != 0) return exported->second;
  const elf::FunctionBounds* found = elf::function_at(bounds_, address);
  return found && found->begin == address && found->end != UINT64_MAX ? found->end - address : 0;
}

const MemberCode::Function& MemberCode::function(uint64_t address) {
  const auto found = known_.find(address);
  if (found != known_.end()) return found->second;
  return known_.emplace(address, read_function(address, size_of(address))).first->second;
}

// The members of what it calls that is not exported, the state of all that it calls.
MembersReached MemberCode::reached_by(uint32_t index) {
  const elf::Sym symbol = elf_.symbols[index];
  if (!is_function(symbol)) return {};
  const Function& itself = function(symbol.st_value);
  MembersReached reached = itself.reached;
  // Not bound to one place in memory, and its relocations are those that are read here.
  reached.is_whole &= elf_.type == elf::ET_DYN && !elf_.has_relr;
  std::vector<int32_t>& all = reached.with_helpers = reached.offsets;
  std::vector<uint64_t> helpers = itself.callees, others;
  std::unordered_set<uint64_t> seen = {symbol.st_value};
  const auto take = [&](std::vector<uint64_t>& work) -> const Function* {
    const uint64_t address = work.back();
    work.pop_back();
    if (seen.size() > kMostFollowed) {
      reached.is_whole = false;
      return nullptr;
    }
    if (!seen.insert(address).second) return nullptr;
    const Function& called = function(address);
    reached.keeps_state |= called.reached.keeps_state;
    reached.is_whole &= called.reached.is_whole;
    return &called;
  };
  while (!helpers.empty() && reached.is_whole) {
    if (exported_.contains(helpers.back())) {
      others.push_back(helpers.back());
      helpers.pop_back();
    } else if (const Function* helper = take(helpers)) {
      all.insert(all.end(), helper->reached.offsets.begin(), helper->reached.offsets.end());
      helpers.insert(helpers.end(), helper->callees.begin(), helper->callees.end());
      make_set(all);
      if (all.size() > kMostOffsets) {
        all.resize(kMostOffsets);
        reached.is_whole = false;
      }
    }
  }
  while (!others.empty() && reached.is_whole)
    if (const Function* other = take(others))
      others.insert(others.end(), other->callees.begin(), other->callees.end());
  return reached;
}

}  // namespace cohabit
