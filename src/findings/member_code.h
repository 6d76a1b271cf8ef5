// One library's x86-64 code, read for the members of objects that functions reach, and for what
// they touch besides. A step that is not understood is never passed over in silence: the function
// is then not known as a whole.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "facts/elf/function_bounds.h"
#include "facts/elf/instructions.h"
#include "findings/members.h"

namespace cohabit {

class MemberCode {
 public:
  // `file`: the image's bytes. Both outlive this.
  MemberCode(const elf::Object& elf, Bytes file);
  MembersReached reached_by(uint32_t symbol);

 private:
  enum class Kind : uint8_t { kFunction, kData, kForeign, kState, kUnknown };
  struct Slot {  // of the GOT
    Kind kind = Kind::kUnknown;
    uint64_t address = 0;  // of a function or data of this library
  };
  struct Pointer {  // in RELRO
    uint64_t place;
    bool to_state;
  };
  struct Function {
    MembersReached reached;
    std::vector<uint64_t> callees;  // where they begin; rising
    std::vector<uint64_t> tables;   // read-only data whose addresses it takes
  };

  void read_relocation(const elf::Rela& relocation);
  Slot slot_of(uint32_t symbol) const;
  bool is_state(const Slot& slot) const;
  std::string_view bytes_at(uint64_t address, uint64_t size) const;
  bool is_relro(uint64_t address) const { return address - elf_.relro.address < elf_.relro.size; }
  bool is_writable(uint64_t address) const;
  bool is_code(uint64_t address) const { return !bytes_at(address, 1).empty(); }
  bool leads_to_state(uint64_t address) const;
  void look_at_target(const elf::Instruction& one, uint64_t target, Function& function) const;
  void look_at_operand(const elf::Instruction& one, uint64_t next, Function& function) const;
  void follow(uint64_t target, Function& function) const;
  void follow_tables(uint64_t begin, uint64_t size, Function& function) const;
  void follow_slot(const Slot& slot, bool is_branch, Function& function) const;
  uint64_t size_of(uint64_t address) const;
  const Function& function(uint64_t address);
  Function read_function(uint64_t address, uint64_t size);

  const elf::Object& elf_;
  std::string_view file_;
  std::unordered_map<uint64_t, Slot> slots_;         // by address
  std::vector<Pointer> pointers_;                    // by place
  std::unordered_map<uint64_t, uint64_t> exported_;  // address -> size, of functions
  std::vector<elf::FunctionBounds> bounds_;
  std::unordered_map<uint64_t, Function> known_;
  uint64_t looked_at_ = 0;
};

}  // namespace cohabit
