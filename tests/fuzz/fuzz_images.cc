// Fuzz target: the index of names made of a file that an ELF reader accepted. The walks over its
// hash chains, versions and relocations must end, whatever the tables claim.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "facts/elf/format.h"
#include "world/images.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string path =
      (std::filesystem::temp_directory_path() / ("cohabit-fuzz-" + std::to_string(getpid())))
          .string();
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(data), size);
  {
    const cohabit::Tree tree;
    cohabit::Images images(tree);
    const auto probe = images.open(path, cohabit::elf::EM_X86_64);
    if (probe.image != cohabit::kNone) images.index(probe.image);
  }
  std::filesystem::remove(path);
  return 0;
}
