#include "facts/elf/function_bounds.h"

#include <algorithm>
#include <array>
#include <optional>

#include "facts/elf/format.h"

namespace cohabit::elf {
namespace {

constexpr uint32_t kPtGnuEhFrame = 0x6474e550;

// The parser keeps PT_LOAD only, so the program header of the unwind table is looked up again.
std::optional<Phdr> unwind_header(Bytes file) {
  const auto header = file.read<Ehdr>(0);
  if (!header) return std::nullopt;
  const auto table = file.table<Phdr>(header->e_phoff, header->e_phnum);
  if (!table) return std::nullopt;
  for (uint64_t i = 0; i < table->size(); i++)
    if ((*table)[i].p_type == kPtGnuEhFrame) return (*table)[i];
  return std::nullopt;
}

}  // namespace

// Version 1, encodings, then (with the usual encodings: udata4 count, datarel sdata4 pairs) a table
// of function begin and FDE, sorted.
std::vector<FunctionBounds> read_function_bounds(Bytes file) {
  constexpr uint32_t kUsualEncodings = 0x3b031b01;
  std::vector<FunctionBounds> functions;
  const auto header = unwind_header(file);
  if (!header || file.read<uint32_t>(header->p_offset) != kUsualEncodings) return functions;
  const auto count = file.read<uint32_t>(header->p_offset + 8);
  if (!count) return functions;
  const auto pairs = file.table<std::array<int32_t, 2>>(header->p_offset + 12, *count);
  if (!pairs) return functions;
  functions.reserve(*count);
  for (uint64_t i = 0; i < *count; i++)
    functions.push_back({header->p_vaddr + static_cast<int64_t>((*pairs)[i][0]), UINT64_MAX});
  std::sort(functions.begin(), functions.end(),
            [](const FunctionBounds& a, const FunctionBounds& b) { return a.begin < b.begin; });
  for (size_t i = 0; i + 1 < functions.size(); i++) functions[i].end = functions[i + 1].begin;
  return functions;
}

const FunctionBounds* function_at(const std::vector<FunctionBounds>& functions, uint64_t address) {
  const auto after =
      std::upper_bound(functions.begin(), functions.end(), address,
                       [](uint64_t value, const FunctionBounds& f) { return value < f.begin; });
  return after == functions.begin() ? nullptr : &*(after - 1);
}

}  // namespace cohabit::elf
