#include "findings/members.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "base/sha256.h"
#include "facts/elf/function_bounds.h"
#include "facts/elf/instructions.h"
#include "findings/symbols.h"

namespace cohabit {
namespace {

using elf::Instruction;

constexpr uint64_t kLongestFunction = 64 << 10;  // bytes that are looked at of one
constexpr uint64_t kMostCode = 32 << 20;         // bytes that are looked at of one library
constexpr size_t kMostHelpers = 64;              // functions that one calls, and these in turn
constexpr double kFewestMembers = 4;             // of both copies together: less tells nothing
constexpr double kOverlap = 0.6, kNearlyAll = 0.9, kMost = 0.8;

void make_set(std::vector<int32_t>& offsets) {
  std::sort(offsets.begin(), offsets.end());
  offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
}

// One library's code, and where what it keeps lies.
class Code {
 public:
  Code(const Image& image, Bytes file);
  MembersReached reached_by(uint32_t symbol);

 private:
  enum class Slot : uint8_t { kFunction, kState };
  struct Function {
    MembersReached reached;
    std::vector<uint64_t> callees;
  };

  void read_slots();
  std::string_view bytes_at(uint64_t address, uint64_t size) const;
  bool is_kept(uint64_t address) const;
  bool touches_state(const Instruction& one, uint64_t next) const;
  const Function& function(uint64_t address, uint64_t size);
  Function read_function(uint64_t address, uint64_t size);
  uint64_t size_of_helper(uint64_t address) const;

  const elf::Object& elf_;
  std::string_view file_;
  std::unordered_map<uint64_t, Slot> slots_;  // of the GOT, by address
  std::unordered_set<uint64_t> exported_;     // where exported functions begin
  std::vector<elf::FunctionBounds> bounds_;
  std::unordered_map<uint64_t, Function> known_;
  uint64_t looked_at_ = 0;
};

Code::Code(const Image& image, Bytes file)
    : elf_(image.elf), file_(file.text()), bounds_(elf::read_function_bounds(file)) {
  read_slots();
  const uint32_t count = symbol_count(elf_);
  for (uint32_t i = 1; i < count; i++) {
    const elf::Sym symbol = elf_.symbols[i];
    if (symbol.type() == elf::STT_FUNC && symbol.st_shndx != elf::SHN_UNDEF)
      exported_.insert(symbol.st_value);
  }
}

// A slot of the GOT is written once; what it leads to may be kept, or be of one thread.
void Code::read_slots() {
  constexpr uint32_t kGlobDat = 6, kJumpSlot = 7, kDtpMod = 16, kTpOff = 18, kTlsDesc = 36;
  const auto enter = [&](const elf::Rela& relocation) {
    switch (relocation.type()) {
      case kJumpSlot:
        slots_.try_emplace(relocation.r_offset, Slot::kFunction);
        return;
      case kGlobDat: {
        if (relocation.symbol() >= elf_.symbols.size()) return;
        const elf::Sym symbol = elf_.symbols[relocation.symbol()];
        const bool is_state = symbol.type() == elf::STT_OBJECT &&
                              symbol.st_shndx != elf::SHN_UNDEF && is_kept(symbol.st_value);
        slots_.try_emplace(relocation.r_offset, is_state ? Slot::kState : Slot::kFunction);
        return;
      }
      case kDtpMod:
      case kTpOff:
      case kTlsDesc:
        slots_.try_emplace(relocation.r_offset, Slot::kState);
        return;
      default:
        return;
    }
  };
  for (uint64_t i = 0; i < elf_.jmprel.size(); i++) enter(elf_.jmprel[i]);
  for (uint64_t i = elf_.relative_count; i < elf_.rela.size(); i++) enter(elf_.rela[i]);
}

std::string_view Code::bytes_at(uint64_t address, uint64_t size) const {
  for (const elf::Phdr& segment : elf_.segments) {
    const uint64_t in = address - segment.p_vaddr;
    if (!(segment.p_flags & elf::PF_X) || in >= segment.p_filesz) continue;
    const uint64_t offset = segment.p_offset + in;
    if (offset >= file_.size()) return {};
    return file_.substr(offset, std::min(size, segment.p_filesz - in));
  }
  return {};
}

// Can be written when relocation is over.
bool Code::is_kept(uint64_t address) const {
  if (address - elf_.relro.address < elf_.relro.size) return false;
  return std::any_of(elf_.segments.begin(), elf_.segments.end(), [&](const elf::Phdr& segment) {
    return (segment.p_flags & elf::PF_W) && address - segment.p_vaddr < segment.p_memsz;
  });
}

bool Code::touches_state(const Instruction& one, uint64_t next) const {
  constexpr int32_t kStackGuard = 0x28;
  if (one.operand == Instruction::kNone) return false;
  if (one.in_thread) return one.base != Instruction::kNoRegister || one.displacement != kStackGuard;
  if (!one.from_instruction) return false;
  const uint64_t target = next + static_cast<uint64_t>(int64_t{one.displacement});
  const auto slot = slots_.find(target);
  return slot == slots_.end() ? is_kept(target) : slot->second == Slot::kState;
}

// Up to its end or what is no instruction.
Code::Function Code::read_function(uint64_t address, uint64_t size) {
  Function function;
  std::vector<int32_t>& offsets = function.reached.offsets;
  std::vector<int32_t> in_frame;
  bool has_frame = false;
  const std::string_view code = bytes_at(address, std::min(size, kLongestFunction));
  looked_at_ += code.size();
  if (looked_at_ > kMostCode) {
    function.reached.keeps_state = true;  // for all that is known
    return function;
  }
  for (size_t at = 0; at < code.size();) {
    const Instruction one = elf::read_instruction(code, at);
    if (one.length == 0) break;
    at += one.length;
    has_frame |= one.sets_frame;
    function.reached.keeps_state |= touches_state(one, address + at);
    if (one.branches)
      function.callees.push_back(address + at + static_cast<uint64_t>(int64_t{one.branch}));
    if (one.operand != Instruction::kTouched || one.has_index || one.is_scaled || one.in_thread ||
        one.base == Instruction::kNoRegister || one.base == Instruction::kStackPointer)
      continue;
    (one.base == Instruction::kFramePointer ? in_frame : offsets).push_back(one.displacement);
  }
  if (!has_frame) offsets.insert(offsets.end(), in_frame.begin(), in_frame.end());
  make_set(offsets);
  return function;
}

const Code::Function& Code::function(uint64_t address, uint64_t size) {
  const auto found = known_.find(address);
  if (found != known_.end()) return found->second;
  return known_.emplace(address, read_function(address, size)).first->second;
}

// 0: no function of the library's own begins there.
uint64_t Code::size_of_helper(uint64_t address) const {
  if (exported_.contains(address)) return 0;
  const elf::FunctionBounds* found = elf::function_at(bounds_, address);
  return found && found->begin == address ? found->end - found->begin : 0;
}

// Exported functions that it calls are looked at for themselves.
MembersReached Code::reached_by(uint32_t index) {
  const elf::Sym symbol = elf_.symbols[index];
  if (symbol.type() != elf::STT_FUNC || symbol.st_shndx == elf::SHN_UNDEF) return {};
  const Function& itself = function(symbol.st_value, symbol.st_size);
  MembersReached reached = itself.reached;
  std::vector<int32_t>& all = reached.with_helpers = reached.offsets;
  std::vector<uint64_t> work = itself.callees;
  std::unordered_set<uint64_t> seen;
  while (!work.empty() && seen.size() < kMostHelpers) {
    const uint64_t address = work.back();
    work.pop_back();
    const uint64_t size = size_of_helper(address);
    if (size == 0 || !seen.insert(address).second) continue;
    const Function& helper = function(address, size);
    reached.keeps_state |= helper.reached.keeps_state;
    all.insert(all.end(), helper.reached.offsets.begin(), helper.reached.offsets.end());
    work.insert(work.end(), helper.callees.begin(), helper.callees.end());
  }
  make_set(all);
  return reached;
}

// As words that a bundle can hold: "!" for state, the function's own offsets, those with helpers.
std::string words_of(const MembersReached& reached) {
  return fmt::format("{}{};{}", reached.keeps_state ? "!" : "", fmt::join(reached.offsets, ","),
                     fmt::join(reached.with_helpers, ","));
}

std::vector<int32_t> read_offsets(std::string_view words) {
  std::vector<int32_t> offsets;
  const char* at = words.data();
  const char* const end = at + words.size();
  while (at < end) {
    int32_t offset = 0;
    const auto [next, error] = std::from_chars(at, end, offset);
    if (error != std::errc()) break;
    offsets.push_back(offset);
    at = next + (next < end ? 1 : 0);
  }
  return offsets;
}

MembersReached read_words(std::string_view words) {
  MembersReached reached;
  reached.keeps_state = words.starts_with('!');
  if (reached.keeps_state) words.remove_prefix(1);
  const size_t middle = std::min(words.find(';'), words.size());
  reached.offsets = read_offsets(words.substr(0, middle));
  reached.with_helpers = read_offsets(words.substr(std::min(middle + 1, words.size())));
  return reached;
}

enum class Likeness : uint8_t { kUntold, kOther, kAlike };

// Of two sets: how much of what either has both have.
Likeness likeness(const std::vector<int32_t>& one, const std::vector<int32_t>& other) {
  std::vector<int32_t> shared;
  std::set_intersection(one.begin(), one.end(), other.begin(), other.end(),
                        std::back_inserter(shared));
  const auto both = static_cast<double>(shared.size());
  const double either = static_cast<double>(one.size() + other.size()) - both;
  if (either < kFewestMembers) return Likeness::kUntold;
  return both >= kOverlap * either ? Likeness::kAlike : Likeness::kOther;
}

void count(Likeness likeness, uint32_t& compared, uint32_t& alike) {
  compared += likeness != Likeness::kUntold;
  alike += likeness == Likeness::kAlike;
}

}  // namespace

// Compilers differ in which helpers they inline, so with these less is asked for.
bool LayoutComparison::is_same() const {
  return is_known() && !keeps_state && alike >= kNearlyAll * compared &&
         alike_with_helpers >= kMost * compared_with_helpers;
}

std::vector<MembersReached> members_reached(const Image& image,
                                            const std::vector<uint32_t>& symbols) {
  if (image.elf.machine != elf::EM_X86_64) return std::vector<MembersReached>(symbols.size());
  const std::string list = fmt::format("{}", fmt::join(symbols, ","));
  const MappedFile::Words words =
      image.map.extract("members reached by " + hexadecimal(sha256(Bytes(list))), [&](Bytes file) {
        Code code(image, file);
        MappedFile::Words found;
        found.reserve(symbols.size());
        for (const uint32_t symbol : symbols) found.push_back(words_of(code.reached_by(symbol)));
        return found;
      });
  std::vector<MembersReached> reached(symbols.size());
  for (size_t i = 0; i < std::min(words.size(), reached.size()); i++)
    reached[i] = read_words(words[i]);
  return reached;
}

LayoutComparison compare_layouts(const Image& one, const Image& other,
                                 const std::vector<std::pair<uint32_t, uint32_t>>& functions) {
  std::vector<uint32_t> of_one, of_other;
  for (const auto& [first, second] : functions) {
    of_one.push_back(first);
    of_other.push_back(second);
  }
  const std::vector<MembersReached> left = members_reached(one, of_one);
  const std::vector<MembersReached> right = members_reached(other, of_other);
  LayoutComparison result;
  for (size_t i = 0; i < functions.size(); i++) {
    result.keeps_state |= left[i].keeps_state || right[i].keeps_state;
    count(likeness(left[i].offsets, right[i].offsets), result.compared, result.alike);
    count(likeness(left[i].with_helpers, right[i].with_helpers), result.compared_with_helpers,
          result.alike_with_helpers);
  }
  return result;
}

}  // namespace cohabit
