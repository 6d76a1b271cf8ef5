#include <fmt/format.h>

#include "facts/cuda/builds.h"
#include "findings/rules/rules.h"

namespace cohabit::rules {
namespace {

Finding describe(const EnvironmentCase& examined, const cuda::FrameworkBuild& build,
                 std::string_view wanted) {
  const cuda::GpuHost& host = examined.options.gpu;
  Finding finding;
  finding.severity = Severity::kError;
  finding.certainty = Certainty::kTable;
  const std::string name = build.distribution ? label(*build.distribution) : build.module;
  finding.headline = fmt::format("{} is made for CUDA {}, which driver {} cannot run: it wants {}",
                                 name, build.cuda->text(), host.driver(), wanted);
  if (build.distribution)
    finding.libraries.push_back(library_of(*build.distribution, build.source));
  // Who does not load the framework does not mind. What plugins' names say is another matter: a
  // framework loads them when it looks for a device.
  if (build.distribution)
    if (std::string package = build.distribution->site + "/" + build.module;
        build.source.starts_with(package + "/"))
      finding.reach.files.push_back(std::move(package));
  finding.evidence.push_back(
      fact("declared", fmt::format("CUDA {} says", build.cuda->text()), build.source));
  if (const auto newest = cuda::cuda_of_driver(host.driver()))
    finding.evidence.push_back(
        fact("declared", fmt::format("driver {} is of CUDA {}", host.driver(), newest->text())));
  finding.help.push_back(
      {fmt::format("update NVIDIA's driver to {} or later", wanted), "", Safety::kManual});
  finding.help.push_back({"or install a build for an older CUDA", "", Safety::kManual});
  return finding;
}

std::vector<Finding> check(const EnvironmentCase& examined) {
  std::vector<Finding> findings;
  const std::string& driver = examined.options.gpu.driver();
  if (driver.empty()) return findings;
  for (const cuda::FrameworkBuild& build :
       cuda::read_builds(examined.tree, examined.interpreter, examined.distributions)) {
    if (!build.cuda) continue;
    const std::string_view wanted = cuda::oldest_driver_for(*build.cuda);
    if (wanted.empty() || cuda::is_driver_at_least(driver, wanted)) continue;
    findings.push_back(describe(examined, build, wanted));
  }
  return findings;
}

}  // namespace

const Rule kCu102 = {
    "CU102",
    "driver-too-old",
    Severity::kError,
    "NVIDIA's driver is too old for the CUDA that a framework was built with.",
    "  The CUDA version that torch, paddle, tensorflow, onnxruntime, JAX's plugins and CuPy say "
    "they "
    "were\n"
    "  built with, against the driver of this machine or --driver. Since CUDA 11 a driver runs all "
    "minors of\n"
    "  its major (minor-version compatibility), so only the major's oldest driver counts. The "
    "table "
    "is\n"
    "  data/cuda_majors.tsv.",
    "  `CUDA driver version is insufficient for CUDA runtime version` (error 35), or the framework "
    "says no\n"
    "  more than that it found no GPU.",
    "  torch 2.15.0 is made for CUDA 13.2; driver 550.54.14 runs CUDA 12.",
    "  Update the driver, or install a build for an older CUDA. On data-centre GPUs the package "
    "cuda-compat\n"
    "  brings a newer user half of the driver.",
    "  Where nothing that is examined loads the framework, it is a warning.\n"
    "  Nothing is said where the driver is unknown. PTX, which needs the driver of its own minor, "
    "is "
    "CU101's.\n"
    "  JAX's plugins and CuPy say their major only, in their name.",
    nullptr,
    check,
};

}  // namespace cohabit::rules
