// x86-64 instructions, as far as a reader of code that was compiled needs them: where the next one
// begins, which memory is touched, where a direct branch leads. Lengths are those of Intel's manual
// (volume 2, chapter 2 and appendix A), VEX and EVEX included; tests hold them against objdump.
#pragma once

#include <cstdint>
#include <string_view>

namespace cohabit::elf {

struct Instruction {
  static constexpr uint8_t kNoRegister = 0xff;
  static constexpr uint8_t kStackPointer = 4, kFramePointer = 5;  // %rsp, %rbp

  uint8_t length = 0;  // bytes; 0: none that is known, or cut short
  // An operand in memory, or its address alone.
  enum Operand : uint8_t { kNone, kTouched, kAddress } operand = kNone;
  uint8_t base = kNoRegister;     // of the operand: 0 to 15
  bool has_index = false;         // a place in an array
  bool from_instruction = false;  // %rip-relative: displacement counts from the next instruction
  bool is_scaled = false;         // EVEX: the displacement is in units that are not told
  bool in_thread = false;         // %fs: of this thread
  int32_t displacement = 0;
  bool branches = false;  // a direct call or jump, by `branch` from the next instruction
  int32_t branch = 0;
  bool branches_through = false;      // a call or jump to the address that the operand holds
  bool branches_by_register = false;  // a jump to where a register says
  bool sets_frame = false;            // %rbp becomes an address on the stack
};

// The instruction that begins at `at`.
Instruction read_instruction(std::string_view code, size_t at);

}  // namespace cohabit::elf
