// Asked by test_instructions.py: the instructions of a part of a file, one a line.
//   instruction_probe FILE OFFSET SIZE
// Offset in the part, length, whether memory is touched, its base register or -1, whether it has an
// index, its displacement, where a direct branch leads or -1, whether an operand counts from the
// instruction, where that is, whether it is of this thread.
#include <cstdio>
#include <cstdlib>

#include "base/tree.h"
#include "facts/elf/instructions.h"

int main(int argc, char** argv) {
  using cohabit::elf::Instruction;
  if (argc != 4) return 2;
  const auto file = cohabit::Tree().map(argv[1]);
  if (!file) return 1;
  const auto part =
      file->bytes().slice(std::strtoull(argv[2], nullptr, 0), std::strtoull(argv[3], nullptr, 0));
  if (!part) return 1;
  const std::string_view code = part->text();
  for (size_t at = 0; at < code.size();) {
    const Instruction one = cohabit::elf::read_instruction(code, at);
    const size_t next = at + (one.length ? one.length : 1);
    std::printf("%zu %u %d %d %d %d %lld %d %lld %d\n", at, one.length,
                one.operand == Instruction::kTouched,
                one.base == Instruction::kNoRegister ? -1 : one.base, one.has_index,
                one.displacement, one.branches ? static_cast<long long>(next) + one.branch : -1LL,
                one.from_instruction, static_cast<long long>(next) + one.displacement,
                one.in_thread);
    at = next;
  }
  return 0;
}
