// device_code_probe FILE...: for each file its path, then lines "KIND ARCHITECTURE ENTRIES BYTES",
// of PTX its version behind them. scripts/refresh_matrix reads them too.
#include <fmt/format.h>

#include "base/tree.h"
#include "facts/cuda/device_code.h"

using namespace cohabit;

int main(int argc, char** argv) {
  const Tree tree;
  for (int i = 1; i < argc; i++) {
    const auto file = tree.map(argv[i]);
    if (!file) {
      fmt::print("{}\n", file.error().message);
      return 1;
    }
    fmt::print("{}\n", argv[i]);
    const cuda::DeviceCodes codes = cuda::read_device_code(file->bytes());
    for (const auto& [code, entries, bytes] : codes.rows) {
      const char* kind = code.kind == cuda::CodeKind::kPtx           ? "ptx"
                         : code.kind == cuda::CodeKind::kMachineCode ? "cubin"
                                                                     : "lto";
      fmt::print("  {} {}{} {} {}", kind, code.sm, code.suffix ? std::string(1, code.suffix) : "",
                 entries, bytes);
      if (code.kind == cuda::CodeKind::kPtx) fmt::print(" {}.{}", code.ptx_major, code.ptx_minor);
      fmt::print("\n");
    }
    for (const std::string& problem : codes.problems) fmt::print("  problem: {}\n", problem);
  }
  return 0;
}
