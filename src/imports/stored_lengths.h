// The lengths of Cython's strings where code that was not optimised stores them one by one.
//
// Cython's function for constants has an array of structures of 32 bits on its stack, the first
// bits of each a string's length (`struct { unsigned int length : 9; } index[]`, Cython 3.1 and
// 3.2). Compilers keep its contents in read-only data, but GCC without -O makes small ones by
// stores, each four bytes behind the one before (the modules of h5py 3.14 and later).
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace cohabit::python {

// The first of them in this code (x86-64) whose sum is `sum`; empty if there are none.
std::vector<uint32_t> stored_lengths(Bytes code, uint64_t sum);

}  // namespace cohabit::python
