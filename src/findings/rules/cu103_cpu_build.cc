#include <fmt/format.h>

#include "facts/cuda/builds.h"
#include "findings/rules/rules.h"

namespace cohabit::rules {
namespace {

std::vector<Finding> check(const EnvironmentCase& examined) {
  const cuda::GpuHost& host = examined.options.gpu;
  if (!host.has_gpu() && host.asked_driver.empty()) return {};
  Finding finding;
  finding.severity = Severity::kWarning;
  finding.certainty = Certainty::kDeclared;
  std::vector<std::string> names;
  for (const cuda::FrameworkBuild& build :
       cuda::read_builds(examined.tree, examined.interpreter, examined.distributions)) {
    if (!build.is_cpu_only) continue;
    const std::string name = build.distribution ? label(*build.distribution) : build.module;
    names.push_back(name);
    if (build.distribution)
      finding.libraries.push_back(library_of(*build.distribution, build.source));
    finding.evidence.push_back(
        fact("declared", name + " is built without CUDA says", build.source));
  }
  if (names.empty()) return {};
  finding.headline = fmt::format("there is a GPU, but {} {} built for the CPU only",
                                 list_some(names, 5), names.size() == 1 ? "is" : "are");
  finding.help.push_back(
      {"where the GPU is wanted, install the build for CUDA", "", Safety::kManual});
  return {std::move(finding)};
}

}  // namespace

const Rule kCu103 = {
    "CU103",
    "cpu-build",
    Severity::kWarning,
    "A framework is built for the CPU only, and there is a GPU.",
    "  What torch, paddle, tensorflow and onnxruntime say of their build, and whether jaxlib has a "
    "CUDA\n"
    "  plugin; only where a GPU is there, or --sm or --driver is given.",
    "  Nothing fails: the program is slow, or says that CUDA is not available.",
    "  paddlepaddle 3.3.1 beside a GPU; the build for CUDA is paddlepaddle-gpu.",
    "  Install the build for CUDA, if the GPU is wanted.",
    "  A CPU build may be what is wanted: then this warning can be ignored.",
    nullptr,
    check,
};

}  // namespace cohabit::rules
