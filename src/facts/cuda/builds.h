// For which CUDA the frameworks of an environment were built: from what their wheels say in small
// Python files (read as text, not run) and from names of distributions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/tree.h"
#include "facts/cuda/driver_table.h"
#include "facts/python/distributions.h"
#include "facts/python/interpreter.h"

namespace cohabit::cuda {

struct FrameworkBuild {
  std::string module;                          // "torch"
  const Distribution* distribution = nullptr;  // null: no metadata
  std::string source;                          // the file that says so
  bool is_cpu_only = false;
  std::optional<CudaVersion> cuda;  // nothing: for the CPU, for another maker's GPU, or unknown
};

// torch, paddle, tensorflow, jax, onnxruntime, cupy, as far as they are there and say it.
std::vector<FrameworkBuild> read_builds(const Tree& tree, const Interpreter& interpreter,
                                        const Distributions& distributions);

}  // namespace cohabit::cuda
