// A driver that is not there: files that stand in for libcuda.so.1 and libnvidia-ml.so.1.
//
// `--assume-gpu` asks what would happen on a machine with a GPU. Libraries that are linked against
// the driver, or open it, must then load. Their files cannot be had here, and nothing in them
// matters but their names and exports; so ELF files with just these are made in memory.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "world/images.h"

namespace cohabit {

// Where ld.so finds a library of an assumed driver.
struct AssumedLibrary {
  std::string name;  // "libcuda.so.1"
  std::string path;  // below a directory that no machine has
};

// Adds the driver's libraries to the images.
Result<std::vector<AssumedLibrary>> assume_driver(Images& images, uint16_t machine);

}  // namespace cohabit
