// Each row is a fact about somebody's code:
// - PYTORCH_ALLOC_CONF replaces PYTORCH_CUDA_ALLOC_CONF; older releases have one of the names only,
//   newer ones read both, some the one first and some the other
//   (c10/cuda/CUDAAllocatorConfig.h of pytorch);
// - JAX raises an error if both names of its memory fraction are set (jaxlib/xla_client.py);
// - TF_FORCE_GPU_ALLOW_GROWTH counts only as exactly "true" or "false" (gpu_bfc_allocator.cc);
// - with XLA_PYTHON_CLIENT_ALLOCATOR=platform JAX has no pool that a fraction could be of (its
//   documentation, "GPU memory allocation");
// - transformers 3 and 4 take torch if USE_TF does not ask for TensorFlow, and TensorFlow if
//   USE_TORCH does not ask for torch (utils/import_utils.py);
// - who looks for a CUDA toolkit asks one of two names first: CuPy CUDA_PATH (_environment.py of
//   cupy), torch CUDA_HOME (utils/cpp_extension.py of torch).
#include <fmt/format.h>

#include <cctype>

#include "findings/rules/rules.h"
#include "findings/variables.h"

namespace cohabit::rules {
namespace {

const std::string* value_of(const EnvironmentCase& examined, const std::string& name) {
  const auto found = examined.options.variables.find(name);
  return found == examined.options.variables.end() ? nullptr : &found->second;
}

bool is_there(const EnvironmentCase& examined, const std::string& module) {
  for (const std::string& site : examined.interpreter.site_directories)
    if (examined.tree.stat(fmt::format("{}/{}", site, module))) return true;
  return false;
}

Finding warn(std::string headline, std::string help) {
  Finding finding;
  finding.severity = Severity::kWarning;
  finding.certainty = Certainty::kTable;
  finding.headline = std::move(headline);
  finding.help.push_back({std::move(help), "", Safety::kManual});
  return finding;
}

// Whether torch's own files have the name at all.
bool torch_reads(const EnvironmentCase& examined, std::string_view name) {
  return stands_in_package(
      examined.tree, examined.interpreter,
      {"torch/lib/libc10_cuda.so", "torch/lib/libc10.so", "torch/lib/libtorch_cuda.so"}, name);
}

Finding two_allocators(const EnvironmentCase& examined) {
  const bool newer = torch_reads(examined, "PYTORCH_ALLOC_CONF");
  const bool older = torch_reads(examined, "PYTORCH_CUDA_ALLOC_CONF");
  const std::string both =
      "PYTORCH_ALLOC_CONF and PYTORCH_CUDA_ALLOC_CONF are set to different values: ";
  if (newer == older)
    return warn(both + "which one counts depends on the release of torch",
                "set PYTORCH_ALLOC_CONF alone, before torch 2.9 PYTORCH_CUDA_ALLOC_CONF alone");
  const char* read = newer ? "PYTORCH_ALLOC_CONF" : "PYTORCH_CUDA_ALLOC_CONF";
  return warn(fmt::format("{}this torch reads {} alone", both, read),
              fmt::format("set {} alone", read));
}

bool is_yes(const std::string* value) {
  if (!value) return false;
  std::string upper(*value);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper == "1" || upper == "ON" || upper == "YES" || upper == "TRUE";
}

// Each of the two is left out because of the other.
void check_transformers(const EnvironmentCase& examined, std::vector<Finding>& findings) {
  if (!is_yes(value_of(examined, "USE_TF")) || !is_yes(value_of(examined, "USE_TORCH")) ||
      !stands_in_package(examined.tree, examined.interpreter,
                         {"transformers/utils/import_utils.py", "transformers/file_utils.py"},
                         "USE_TF"))
    return;
  findings.push_back(
      warn("USE_TORCH and USE_TF both ask for their framework: transformers then takes neither",
           "set the one that is wanted, or none: each is found by itself"));
}

void check_toolkits(const EnvironmentCase& examined, std::vector<Finding>& findings) {
  const std::string* home = value_of(examined, "CUDA_HOME");
  const std::string* path = value_of(examined, "CUDA_PATH");
  if (!home || !path || home->empty() || path->empty()) return;
  const auto of_home = examined.tree.stat(*home), of_path = examined.tree.stat(*path);
  if (of_home && of_path ? of_home->id == of_path->id : *home == *path) return;
  if (!is_there(examined, "cupy") && !is_there(examined, "torch")) return;
  findings.push_back(
      warn("CUDA_HOME and CUDA_PATH name different directories: torch builds with the one, CuPy "
           "takes headers and libraries from the other",
           "let both name one CUDA toolkit"));
}

void check_jax_pool(const EnvironmentCase& examined, std::vector<Finding>& findings) {
  const std::string* allocator = value_of(examined, "XLA_PYTHON_CLIENT_ALLOCATOR");
  if (!allocator || *allocator != "platform" || !is_there(examined, "jax")) return;
  for (const char* name : {"XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"})
    if (value_of(examined, name))
      findings.push_back(
          warn(fmt::format("{} has no effect beside XLA_PYTHON_CLIENT_ALLOCATOR=platform: JAX then "
                           "has no pool of memory",
                           name),
               "leave one of the two out"));
}

std::vector<Finding> check(const EnvironmentCase& examined) {
  std::vector<Finding> findings;
  const std::string* allocator = value_of(examined, "PYTORCH_ALLOC_CONF");
  const std::string* older = value_of(examined, "PYTORCH_CUDA_ALLOC_CONF");
  if (allocator && older && *allocator != *older && is_there(examined, "torch"))
    findings.push_back(two_allocators(examined));
  if (value_of(examined, "XLA_CLIENT_MEM_FRACTION") &&
      value_of(examined, "XLA_PYTHON_CLIENT_MEM_FRACTION") && is_there(examined, "jax"))
    findings.push_back(warn(
        "XLA_CLIENT_MEM_FRACTION and XLA_PYTHON_CLIENT_MEM_FRACTION are both set: JAX refuses that",
        "set XLA_CLIENT_MEM_FRACTION alone"));
  const std::string* growth = value_of(examined, "TF_FORCE_GPU_ALLOW_GROWTH");
  if (growth && *growth != "true" && *growth != "false" && is_there(examined, "tensorflow"))
    findings.push_back(
        warn("TF_FORCE_GPU_ALLOW_GROWTH is set, but neither to true nor to false: it has no effect",
             "write TF_FORCE_GPU_ALLOW_GROWTH=true, in small letters"));
  check_jax_pool(examined, findings);
  check_transformers(examined, findings);
  check_toolkits(examined, findings);
  return findings;
}

}  // namespace

const Rule kEv002 = {
    "EV002",
    "contradicting-variables",
    Severity::kWarning,
    "Variables of a framework contradict each other, or have a value that it does not take.",
    "  Both names of PyTorch's allocator settings with different values; both names of JAX's "
    "memory "
    "fraction,\n"
    "  or one of them where it has no pool; TF_FORCE_GPU_ALLOW_GROWTH with anything but true and "
    "false;\n"
    "  USE_TORCH and USE_TF together, for transformers; CUDA_HOME and CUDA_PATH of two toolkits.",
    "  A setting is not what one thinks, or the framework stops at its first use of the GPU.",
    "  TF_FORCE_GPU_ALLOW_GROWTH=1",
    "  Keep one of the two names; write the value as the framework expects it.",
    "  Only what is listed here. Values are not shown.",
    nullptr,
    check,
};

}  // namespace cohabit::rules
