// Where a CUDA toolkit is, and where XLA looks for one. XLA, the compiler of TensorFlow and JAX,
// needs two things of it that no framework carries: libdevice.10.bc, NVIDIA's mathematical
// functions as bitcode, and ptxas. It tries a list of places one after the other and takes the
// first that has nvvm/libdevice, even if the file itself is missing there. The order is that of
// cuda_root_path.cc in openxla/xla and, before it, of jax/_src/lib/__init__.py; "." comes last and
// depends on where the program is started.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/tree.h"
#include "facts/cuda/builds.h"

namespace cohabit {

struct ToolkitSearch {
  std::vector<std::string> outcomes;  // with their places
  std::string taken;                  // the root that is used; empty: none
  bool complete = false;              // it has the file
  bool has_ptxas = false;
};
// What XLA of this framework would take. Its build names a CUDA.
ToolkitSearch search_toolkit(const Tree& tree, const std::map<std::string, std::string>& variables,
                             const cuda::FrameworkBuild& build);

// A directory that is laid out as a toolkit, or a part of one.
struct Toolkit {
  std::string root;
  std::string origin;  // "nvidia-cuda-nvcc-cu12 12.9.86", "conda", "the system"
  int major = 0;       // of its CUDA; 0: its name does not say
  bool has_libdevice = false, has_ptxas = false, has_nvcc = false;
};
// Those of wheels, of the environment itself, of variables and of the system, in that order; only
// such that have something.
std::vector<Toolkit> find_toolkits(const Tree& tree, const Interpreter& interpreter,
                                   const Distributions& distributions,
                                   const std::map<std::string, std::string>& variables);

// A program in the directories of PATH: its path; empty: there is none.
std::string find_on_path(const Tree& tree, const std::string& path, const std::string& program);

}  // namespace cohabit
