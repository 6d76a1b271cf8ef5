// Fuzz target: the index of names made of a file that an ELF reader accepted, and its code as
// findings/members.h reads it. The walks over its hash chains, versions and relocations must end,
// whatever the tables claim.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "facts/elf/format.h"
#include "findings/members.h"
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
    if (probe.image != cohabit::kNone) {
      images.index(probe.image);
      constexpr uint32_t kSome = 32;
      std::vector<uint32_t> symbols;
      for (uint32_t i = 0; i < kSome; i++) symbols.push_back(i);
      (void)cohabit::members_reached(images[probe.image], symbols);
    }
  }
  std::filesystem::remove(path);
  return 0;
}
