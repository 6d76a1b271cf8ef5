// What XLA would not find, by the list of places in findings/toolkit.h.
#include <fmt/format.h>

#include "facts/cuda/builds.h"
#include "findings/rules/rules.h"
#include "findings/toolkit.h"

namespace cohabit::rules {
namespace {

std::vector<Finding> check(const EnvironmentCase& examined) {
  std::vector<Finding> findings;
  const cuda::GpuHost& host = examined.options.gpu;
  if (!host.has_gpu() && host.asked_driver.empty()) return findings;
  for (const cuda::FrameworkBuild& build :
       cuda::read_builds(examined.tree, examined.interpreter, examined.distributions)) {
    if (!build.cuda || (build.module != "tensorflow" && build.module != "jax")) continue;
    const ToolkitSearch found = search_toolkit(examined.tree, examined.options.variables, build);
    if (found.complete) continue;
    Finding finding;
    finding.severity = Severity::kWarning;
    finding.certainty = Certainty::kTable;
    const std::string name = build.distribution ? label(*build.distribution) : build.module;
    finding.headline = fmt::format("{} would not find libdevice, which XLA needs to compile", name);
    if (build.distribution)
      finding.libraries.push_back(library_of(*build.distribution, build.source));
    for (const std::string& outcome : found.outcomes)
      finding.evidence.push_back(fact("search", outcome));
    if (found.taken.empty() || !found.has_ptxas)
      finding.evidence.push_back(
          fact("search", "ptxas is looked for in the same places, then on PATH"));
    const bool new_wheels = build.cuda->major >= 13;
    finding.help.push_back(
        {"install the wheel that has both",
         installer_command(examined, "install",
                           {new_wheels ? "nvidia-cuda-nvcc"
                                       : fmt::format("nvidia-cuda-nvcc-cu{}", build.cuda->major)}),
         Safety::kUnsafe});
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

const Rule kCu105 = {
    "CU105",
    "libdevice-not-found",
    Severity::kWarning,
    "TensorFlow or JAX would not find libdevice and ptxas.",
    "  The places where XLA looks for the CUDA toolkit, in its order, and why each is no good. "
    "Only "
    "where a\n"
    "  GPU is there, or --sm or --driver is given.",
    "  Whatever XLA compiles for the GPU and needs a mathematical function ends with `libdevice "
    "not "
    "found at\n"
    "  ./libdevice.10.bc`: jit_compile, Keras optimizers since TensorFlow 2.11, almost all of JAX.",
    "  tensorflow 2.15 installed without its extra [and-cuda], and no toolkit on the system.",
    "  Install the wheel nvidia-cuda-nvcc of the framework's CUDA, or set\n"
    "  XLA_FLAGS=--xla_gpu_cuda_data_dir=DIRECTORY.",
    "  The current directory, the last place, is not looked at. Old releases did not look into "
    "wheels;\n"
    "  libraries that were built with another list of places are judged by this one.",
    nullptr,
    check,
};

}  // namespace cohabit::rules
