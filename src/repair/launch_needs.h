// What an environment needs set before a process of it starts, and nothing else:
// data/environment.tsv says which variables there are and when they are needed, the files say
// whether they are. A variable that is set already is the user's: it is never replaced, at most
// something is added to it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/tree.h"
#include "base/variables.h"
#include "facts/cuda/gpu_host.h"
#include "facts/python/distributions.h"
#include "facts/python/interpreter.h"

namespace cohabit {

struct LaunchFacts {
  const Tree& tree;
  const Interpreter& interpreter;
  const Distributions& distributions;
  cuda::GpuHost gpu;
  VariableMap variables;  // that are set
};

enum class Setting : uint8_t {
  kSet,
  kAppend,   // behind what is set, after the separator
  kPrepend,  // in front of what is set, likewise
  kCopy,     // of another variable
  kReplace,  // LD_LIBRARY_PATH without what does harm
};
std::string_view setting_name(Setting setting);

struct NeededVariable {
  std::string name;
  std::string part;  // the value; what is added; the name of the variable that is copied
  Setting setting = Setting::kSet;
  std::string separator = " ";
  std::string reason, source;
};
// Its value in a process that starts with `variables`; nothing: it is unset.
std::optional<std::string> value_of(const NeededVariable& variable, const VariableMap& variables);
// A line for sh that does it. `guarded`: not where somebody has set it by then.
std::string shell_line(const NeededVariable& variable, bool guarded);

// A part of a CUDA toolkit and where it would be taken from.
struct FoundTool {
  std::string name;  // "libdevice", "ptxas"
  std::string path;
  std::string origin;  // "nvidia-cuda-nvcc-cu12 12.9.86"
  std::string reader;  // "tensorflow 2.21.0"
};

struct LaunchNeeds {
  std::vector<NeededVariable> variables;
  std::vector<FoundTool> tools;  // what XLA takes, found or set
};
LaunchNeeds find_needs(const LaunchFacts& facts);

}  // namespace cohabit
