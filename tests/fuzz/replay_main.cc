// Feeds every file of the directories given to a fuzz target, once: a crash that was found stays
// found, in every build and without libFuzzer.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

void replay(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  // Named before it runs: after a crash the last line tells which input did it.
  std::printf("%s (%zu bytes)\n", path.c_str(), bytes.size());
  std::fflush(stdout);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  int count = 0;
  for (int i = 1; i < argc; i++) {
    const std::filesystem::path given = argv[i];
    if (std::filesystem::is_regular_file(given)) {
      replay(given);
      count++;
    } else if (std::filesystem::is_directory(given)) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(given)) {
        if (!entry.is_regular_file()) continue;
        replay(entry.path());
        count++;
      }
    }
  }
  if (count == 0) {
    std::fprintf(stderr, "no input files: a replay that feeds nothing proves nothing\n");
    return 1;
  }
  std::printf("%d inputs replayed\n", count);
  return 0;
}
