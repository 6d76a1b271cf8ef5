// The reader of fat binaries: any bytes. What it counts fits into the file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "facts/cuda/device_code.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const cohabit::cuda::DeviceCodes codes =
      cohabit::cuda::read_device_code(cohabit::Bytes(data, size));
  if (codes.containers == 0 && !codes.empty()) std::abort();
  for (const auto& row : codes.rows) {
    if (row.entries == 0 || row.code.sm < 10) std::abort();
    if (cohabit::cuda::name_of(row.code).empty()) std::abort();
  }
  return 0;
}
