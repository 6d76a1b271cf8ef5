// What frameworks take of a GPU before they compute anything:
// - TensorFlow takes nearly all that is free, unless TF_FORCE_GPU_ALLOW_GROWTH is exactly "true" or
// the
//   allocator is cuda_malloc_async (gpu_bfc_allocator.cc, gpu_process_state.cc);
// - JAX takes 75 %, unless XLA_PYTHON_CLIENT_PREALLOCATE is "false" or "0", or the allocator is
//   "platform"; XLA_CLIENT_MEM_FRACTION, in older releases XLA_PYTHON_CLIENT_MEM_FRACTION, is
//   another share (jaxlib/xla_client.py);
// - Paddle's packages grow by need; FLAGS_allocator_strategy=naive_best_fit takes the share of
//   FLAGS_fraction_of_gpu_memory_to_use, 92 % (Paddle's documentation of its memory flags);
// - PyTorch, ONNX Runtime, CuPy and CTranslate2 grow by need.
//
// None takes anything of a GPU that CUDA_VISIBLE_DEVICES hides: the list ends at the first name
// that is none (CUDA's programming guide), so an empty one and "-1" hide all. JAX_PLATFORMS names
// all that JAX starts.
#include <fmt/format.h>

#include <cstdlib>

#include "base/text.h"
#include "base/variables.h"
#include "facts/cuda/builds.h"
#include "findings/rules/rules.h"

namespace cohabit::rules {
namespace {

constexpr double kNearlyAll = 0.95;  // TensorFlow leaves some hundreds of megabytes to the driver
constexpr double kOfJax = 0.75;
constexpr double kOfPaddle = 0.92;

// A share between 0 and 1; `otherwise` if the variable holds none.
double share_of(const VariableMap& variables, const std::string& name, double otherwise) {
  const std::string text = variable_of(variables, name);
  char* end = nullptr;
  const double share = std::strtod(text.c_str(), &end);
  return text.empty() || *end || !(share >= 0) || share > 1 ? otherwise : share;
}

bool hides_all(const VariableMap& variables) {
  const auto visible = variables.find("CUDA_VISIBLE_DEVICES");
  if (visible == variables.end()) return false;
  const std::string_view first = trim(visible->second);
  return first.empty() || first[0] == '-' || first[0] == ',';
}

bool jax_leaves_gpus(const VariableMap& variables) {
  const std::string platforms = variable_of(variables, "JAX_PLATFORMS");
  return !platforms.empty() && platforms.find("cuda") == platforms.npos &&
         platforms.find("gpu") == platforms.npos;
}

struct Share {
  double part = 0;       // of the GPU's memory, taken at first use
  std::string bound_by;  // the setting that makes it grow by need
};

Share of_tensorflow(const VariableMap& variables) {
  const bool grows = variable_of(variables, "TF_FORCE_GPU_ALLOW_GROWTH") == "true" ||
                     variable_of(variables, "TF_GPU_ALLOCATOR") == "cuda_malloc_async";
  return {grows ? 0 : kNearlyAll, "TF_FORCE_GPU_ALLOW_GROWTH=true"};
}

Share of_jax(const VariableMap& variables) {
  if (jax_leaves_gpus(variables)) return {};
  const std::string preallocate = variable_of(variables, "XLA_PYTHON_CLIENT_PREALLOCATE");
  const bool grows = preallocate == "false" || preallocate == "False" || preallocate == "0" ||
                     variable_of(variables, "XLA_PYTHON_CLIENT_ALLOCATOR") == "platform";
  const double older = share_of(variables, "XLA_PYTHON_CLIENT_MEM_FRACTION", kOfJax);
  return {grows ? 0 : share_of(variables, "XLA_CLIENT_MEM_FRACTION", older),
          "XLA_PYTHON_CLIENT_PREALLOCATE=false"};
}

Share of_paddle(const VariableMap& variables) {
  if (variable_of(variables, "FLAGS_allocator_strategy") != "naive_best_fit") return {};
  return {share_of(variables, "FLAGS_fraction_of_gpu_memory_to_use", kOfPaddle),
          "FLAGS_allocator_strategy=auto_growth"};
}

Share share_of_build(const std::string& module, const VariableMap& variables) {
  if (module == "tensorflow") return of_tensorflow(variables);
  if (module == "jax") return of_jax(variables);
  if (module == "paddle") return of_paddle(variables);
  return {};
}

std::string amount(double part, uint64_t memory) {
  std::string percent = fmt::format("{:.0f} %", part * 100);
  if (!memory) return percent;
  return fmt::format("{}, {:.1f} GiB", percent,
                     part * static_cast<double>(memory) / static_cast<double>(1 << 30));
}

std::vector<Finding> check(const EnvironmentCase& examined) {
  const cuda::GpuHost& host = examined.options.gpu;
  if ((!host.has_gpu() && !host.memory) || hides_all(examined.options.variables)) return {};
  Finding finding;
  std::vector<std::string> names, settings;
  std::map<std::string, bool> seen;
  double sum = 0;
  for (const cuda::FrameworkBuild& build :
       cuda::read_builds(examined.tree, examined.interpreter, examined.distributions)) {
    if (!build.cuda || !seen.emplace(build.module, true).second) continue;
    const Share share = share_of_build(build.module, examined.options.variables);
    const std::string name = build.distribution ? label(*build.distribution) : build.module;
    finding.evidence.push_back(fact("declared", share.part > 0
                                                    ? fmt::format("{} takes {} at first use", name,
                                                                  amount(share.part, host.memory))
                                                    : name + " takes memory as it needs it"));
    if (build.distribution)
      finding.libraries.push_back(library_of(*build.distribution, build.source));
    names.push_back(name);
    sum += share.part;
    if (share.part > 0) settings.push_back(share.bound_by);
  }
  // Some room must be left for those that grow, and for the contexts themselves.
  if (names.size() < 2 || sum < 0.9) return {};
  finding.severity = Severity::kWarning;
  finding.certainty = Certainty::kTable;
  finding.headline =
      fmt::format("{} would reserve {} of a GPU's memory together, in one process or several",
                  list_some(names, 6), amount(sum, host.memory));
  finding.help.push_back(
      {"let them take memory as they need it: " + fmt::format("{}", fmt::join(settings, " ")), "",
       Safety::kManual});
  return {std::move(finding)};
}

}  // namespace

const Rule kMm001 = {
    "MM001",
    "reserved-memory",
    Severity::kWarning,
    "The frameworks of this environment reserve more memory than a GPU has for all of them.",
    "  What each framework that is built for CUDA takes at its first use of the GPU, with the "
    "variables that\n"
    "  are set; only where a GPU is there, or --sm or --gpu-memory is given, and only for two or "
    "more.",
    "  The second one to start ends with `out of memory`, whatever it wanted to compute.",
    "  TensorFlow takes nearly all, JAX 75 %.",
    "  TF_FORCE_GPU_ALLOW_GROWTH=true, XLA_PYTHON_CLIENT_PREALLOCATE=false or "
    "XLA_CLIENT_MEM_FRACTION, and\n"
    "  for Paddle FLAGS_allocator_strategy=auto_growth.",
    "  Settings made in Python code are not seen. What models need is not known.",
    nullptr,
    check,
};

}  // namespace cohabit::rules
