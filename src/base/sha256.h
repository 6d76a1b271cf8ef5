// SHA-256 (FIPS 180-4), for comparing files with what a RECORD says of them. Plain code, 200 MB/s.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"

namespace cohabit {

std::array<uint8_t, 32> sha256(Bytes bytes);

}  // namespace cohabit
