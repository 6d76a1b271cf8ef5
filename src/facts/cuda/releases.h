// Which builds of the frameworks there are, and which pairs of them were simulated: the tables
// data/releases.tsv, data/other_builds.tsv, data/undeclared.tsv and data/pairs.tsv. What they do
// not know stays unknown.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facts/cuda/device_code.h"
#include "facts/cuda/driver_table.h"

namespace cohabit::cuda {

// "3.9" as 309, so that they compare as numbers; 0 if it is no version of Python 3.
int parse_python(std::string_view text);
std::string python_text(int python);

// The CUDA of a build. `at_least`: the requirements name only the oldest.
struct BuiltFor {
  std::optional<CudaVersion> version;  // nothing: for the CPU, or unknown
  bool is_cpu_only = false;
  bool at_least = false;
};

struct Build {
  std::string framework;     // the module: "torch"
  std::string distribution;  // "jax-cuda12-plugin"
  std::string version;       // "2.8.0"; of a build on another index "2.8": its minor
  std::string released;      // the day; empty: unknown
  std::string platform;      // "x86_64"; "source": built where it is installed
  std::vector<int> pythons;
  bool any_later_python = false;
  std::string glibc;    // "2.28"; empty: unknown
  std::string install;  // "jax[cuda12]==0.7.2"
  std::string backend;  // "cu126" if it is not on the package index, but on one for this CUDA
  BuiltFor cuda;
  std::string cuda_text, cuda_from;  // as the table has it: "12.8", "scanned torch/version.py"
  bool is_scanned = false;           // the code is known
  std::vector<DeviceCode> code;      // empty and scanned: there is none
  std::string source, read;          // the wheel or document, and the day it was read

  bool takes_python(int python) const;
};

// The newest first within each distribution.
const std::vector<Build>& known_builds();
// Rows of the same form as data/releases.tsv, and as data/other_builds.tsv.
std::vector<Build> parse_releases(std::string_view table);
std::vector<Build> parse_other_builds(std::string_view table);

// What a release imports whenever it is imported, and no requirement of it brings.
struct Undeclared {
  std::string distribution, version;  // of the release
  std::vector<int> pythons;           // for which nothing brings it
  std::string needs, module;          // a requirement, "numpy<2", and what is imported: "numpy"
  std::string imported_by;            // "paddle/utils/cpp_extension/cpp_extension.py:21"
  std::string wheel, read;
};
const std::vector<Undeclared>& known_undeclared();
// Of this build, by what is known of its minor; python 0: any of its Pythons.
std::vector<const Undeclared*> undeclared_of(const Build& build, int python);

// Two frameworks in one environment, imported in this order.
struct SimulatedPair {
  std::string first, second;  // "torch==2.8.0"
  int python = 0;
  std::string outcome, with_gpu;  // "sound", "not-installable", "error: CB101, ..."
  std::string alone;              // errors of either alone: "tensorflow PY302"
  std::string certainty, read;
};
const std::vector<SimulatedPair>& simulated_pairs();

// "torch" of "torch[opt]==2.8.0"
std::string_view name_of_pin(std::string_view pin);

}  // namespace cohabit::cuda
