// Where the functions of a library begin and end, those without a symbol too: from its unwind
// table (.eh_frame_hdr; LSB core, "Exception frames").
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace cohabit::elf {

struct FunctionBounds {
  uint64_t begin = 0;  // addresses
  uint64_t end = UINT64_MAX;
};

// Sorted; an end is where the next one begins. Empty where there is no table of the usual
// encodings.
std::vector<FunctionBounds> read_function_bounds(Bytes file);

// The last one that begins at or before the address; null if none does.
const FunctionBounds* function_at(const std::vector<FunctionBounds>& functions, uint64_t address);

}  // namespace cohabit::elf
