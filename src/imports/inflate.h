// Unpacks zlib data (RFC 1950 and 1951), for the string tables of Cython 3.1 and later.
#pragma once

#include <optional>
#include <string>

#include "base/bytes.h"

namespace cohabit::python {

struct Inflated {
  std::string text;
  uint64_t used = 0;  // bytes of the input, with header and checksum
};

// Nothing if `data` does not start with a whole zlib stream of at most `limit` bytes of text.
std::optional<Inflated> inflate_zlib(Bytes data, uint64_t limit);

}  // namespace cohabit::python
