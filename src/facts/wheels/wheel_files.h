// Every file of a wheel with its size and hash, for as few bytes as that takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "facts/wheels/byte_source.h"
#include "facts/wheels/zip_directory.h"

namespace cohabit::wheels {

struct WheelFile {
  std::string name;  // of the member
  std::string hash;  // "sha256=BASE64"; empty: RECORD does not say
  uint64_t size = 0;
  bool is_recorded = true;  // RECORD has a row for it
};

struct WheelFiles {
  std::string dist_info;  // "torch-2.15.0.dist-info"
  std::string metadata;
  std::string entry_points;  // empty: there are none
  std::vector<WheelFile> files;
};

// `name`: of the distribution; which of several dist-info directories is meant.
Result<WheelFiles> read_wheel_files(ByteSource& source, const std::string& name);

}  // namespace cohabit::wheels
