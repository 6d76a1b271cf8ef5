// XLA, the compiler of TensorFlow and JAX, needs two things of the CUDA toolkit that no framework
// carries: libdevice.10.bc, NVIDIA's mathematical functions as bitcode, and ptxas. It tries a list
// of places one after the other and takes the first that has nvvm/libdevice, even if the file
// itself is missing there. The order is that of cuda_root_path.cc in openxla/xla and, before it, of
// jax/_src/lib/__init__.py; "." comes last and depends on where the program is started.
#include <fmt/format.h>

#include <algorithm>

#include "base/paths.h"
#include "facts/cuda/builds.h"
#include "findings/rules/rules.h"

namespace cohabit::rules {
namespace {

struct Place {
  std::string root;
  std::string because;
};

std::string variable(const EnvironmentCase& examined, const std::string& name) {
  const auto found = examined.options.variables.find(name);
  return found == examined.options.variables.end() ? "" : found->second;
}

// The value of --xla_gpu_cuda_data_dir in XLA_FLAGS.
std::string data_directory(const std::string& flags) {
  constexpr std::string_view kFlag = "--xla_gpu_cuda_data_dir=";
  const size_t at = flags.find(kFlag);
  if (at == std::string::npos) return "";
  const size_t begin = at + kFlag.size();
  return flags.substr(begin, flags.find_first_of(" \t", begin) - begin);
}

// The directory that holds the framework's package.
std::string site_of(const cuda::FrameworkBuild& build) {
  if (build.distribution) return build.distribution->site;
  return build.source.substr(0, build.source.find("/" + build.module + "/"));
}

std::vector<Place> places_of(const EnvironmentCase& examined, const cuda::FrameworkBuild& build) {
  const std::string site = site_of(build);
  const std::string wheel = site + (build.cuda->major >= 13 ? "/nvidia/cu13" : "/nvidia/cuda_nvcc");
  std::vector<Place> places;
  const std::string directory = data_directory(variable(examined, "XLA_FLAGS"));
  if (!directory.empty()) places.push_back({directory, "XLA_FLAGS"});
  if (build.module == "jax") {
    if (const std::string root = variable(examined, "CUDA_ROOT"); !root.empty())
      places.push_back({root, "CUDA_ROOT"});
    places.push_back({site + "/nvidia/cu13", "a wheel's, for CUDA 13"});
    places.push_back({site + "/nvidia/cuda_nvcc", "a wheel's, for CUDA 12"});
  }
  if (build.cuda->minor != cuda::kAnyMinor)
    places.push_back(
        {fmt::format("/usr/local/cuda-{}", build.cuda->text()), "the toolkit of the build"});
  places.push_back({"/usr/local/cuda", "the system's toolkit"});
  places.push_back({"/opt/cuda", "the system's toolkit"});
  if (build.module != "jax") places.push_back({wheel, "a wheel's"});
  const std::string package =
      site + (build.module == "jax" ? fmt::format("/jax_plugins/xla_cuda{}", build.cuda->major)
                                    : "/" + build.module);
  places.push_back({package + "/cuda", "inside the framework"});
  for (const char* up : {"../../../..", "../../../../.."})
    if (std::string prefix = join_normal(package, up); !prefix.empty())
      places.push_back({std::move(prefix), "the prefix"});
  return places;
}

struct Search {
  std::vector<std::string> outcomes;  // with their places
  std::string taken;                  // the root that is used; empty: none
  bool complete = false;              // it has the file
  bool has_ptxas = false;
};

Search search(const EnvironmentCase& examined, const cuda::FrameworkBuild& build) {
  Search result;
  for (const Place& place : places_of(examined, build)) {
    const std::string directory = place.root + "/nvvm/libdevice";
    const auto status = examined.tree.stat(directory);
    if (!status || !status->is_directory()) {
      result.outcomes.push_back(
          fmt::format("no nvvm/libdevice in {} ({})", place.root, place.because));
      continue;
    }
    result.taken = place.root;
    result.complete = examined.tree.stat(directory + "/libdevice.10.bc").has_value();
    result.has_ptxas = examined.tree.stat(place.root + "/bin/ptxas").has_value();
    if (!result.complete)
      result.outcomes.push_back(
          fmt::format("{} ({}) is taken, but has no libdevice.10.bc", directory, place.because));
    return result;
  }
  return result;
}

std::vector<Finding> check(const EnvironmentCase& examined) {
  std::vector<Finding> findings;
  const cuda::GpuHost& host = examined.options.gpu;
  if (!host.has_gpu() && host.asked_driver.empty()) return findings;
  for (const cuda::FrameworkBuild& build :
       cuda::read_builds(examined.tree, examined.interpreter, examined.distributions)) {
    if (!build.cuda || (build.module != "tensorflow" && build.module != "jax")) continue;
    const Search found = search(examined, build);
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
