// Unpacks a bundle, which comes from a stranger: nothing gets out of the directory, nothing is
// written through a link, and counts, sizes and the data in all are limited, those of a small file
// that claims to be a large one too.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace cohabit {

struct UnpackLimits {
  uint64_t entries = 2'000'000;
  uint64_t file_size = uint64_t{1} << 36;  // of a sparse file, with its holes
  uint64_t bytes = uint64_t{4} << 30;      // of the archive without its compression
};

// Into a directory that is empty. Files, directories, pipes and links; links are made last.
Result<void> unpack_archive(const std::string& path, const std::string& directory,
                            const UnpackLimits& limits = {});

}  // namespace cohabit
