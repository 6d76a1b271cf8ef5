// Unpacks the LZSS data in which Cython since 3.3 keeps the strings of a module.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace cohabit::python {

// The strings of the table in this read-only data. Neither the packed text nor the array with the
// strings' lengths says where it is: both are found by trying. Empty if there is none.
std::vector<std::string> find_lzss_strings(Bytes data, uint64_t address);

}  // namespace cohabit::python
