#include "findings/toolkit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/paths.h"
#include "base/rows.h"
#include "base/variables.h"

namespace cohabit {
namespace {

struct Place {
  std::string root;
  std::string because;
};

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

std::vector<Place> places_of(const std::map<std::string, std::string>& variables,
                             const cuda::FrameworkBuild& build) {
  const std::string site = site_of(build);
  const std::string wheel = site + (build.cuda->major >= 13 ? "/nvidia/cu13" : "/nvidia/cuda_nvcc");
  std::vector<Place> places;
  const std::string directory = data_directory(variable_of(variables, "XLA_FLAGS"));
  if (!directory.empty()) places.push_back({directory, "XLA_FLAGS"});
  if (build.module == "jax") {
    if (const std::string root = variable_of(variables, "CUDA_ROOT"); !root.empty())
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

// 13 of "nvidia/cu13", 12 of "/usr/local/cuda-12.4"; 0: none.
int major_of(const std::string& root) {
  const std::string name = last_part(root);
  for (const std::string_view prefix : {"cuda-", "cu"}) {
    if (!name.starts_with(prefix)) continue;
    const auto version = cuda::parse_cuda_version(std::string_view(name).substr(prefix.size()));
    return version ? version->major : 0;
  }
  return 0;
}

// "-cu12" at the end of a distribution's name.
int major_of(const Distribution& distribution) {
  const size_t at = distribution.name.rfind("-cu");
  if (at == std::string::npos) return 0;
  const auto version = cuda::parse_cuda_version(std::string_view(distribution.name).substr(at + 3));
  return version ? version->major : 0;
}

class ToolkitFinder {
 public:
  explicit ToolkitFinder(const Tree& tree) : tree_(tree) {}

  void look_at(const std::string& root, const std::string& origin, int major) {
    if (root.empty() || std::any_of(found.begin(), found.end(),
                                    [&](const Toolkit& known) { return known.root == root; }))
      return;
    Toolkit toolkit{root, origin, major ? major : major_of(root)};
    toolkit.has_libdevice = is_there(root + "/nvvm/libdevice/libdevice.10.bc");
    toolkit.has_ptxas = is_there(root + "/bin/ptxas");
    toolkit.has_nvcc = is_there(root + "/bin/nvcc");
    if (toolkit.has_libdevice || toolkit.has_ptxas || toolkit.has_nvcc)
      found.push_back(std::move(toolkit));
  }

  // Wheels of NVIDIA, and what Triton carries for itself.
  void look_at_wheels(const std::string& site, const Distributions& distributions) {
    for (const char* package :
         {"nvidia/cu13", "nvidia/cuda_nvcc", "triton/backends/nvidia", "triton/third_party/cuda"}) {
      const std::string root = fmt::format("{}/{}", site, package);
      const Distribution* owner = owner_of(root, distributions);
      look_at(root, owner ? owner->name + " " + owner->version : "a package without metadata",
              owner ? major_of(*owner) : 0);
    }
  }

  // The newest first.
  void look_at_versions(const std::string& directory) {
    std::vector<std::string> names = tree_.list(directory);
    std::reverse(names.begin(), names.end());
    for (const std::string& name : names)
      if (name.starts_with("cuda-")) look_at(join_normal(directory, name), "the system", 0);
  }

  std::vector<Toolkit> found;

 private:
  bool is_there(const std::string& path) const { return tree_.stat(path).has_value(); }
  const Distribution* owner_of(const std::string& root, const Distributions& distributions) const {
    for (const char* file : {"/bin/ptxas", "/nvvm/libdevice/libdevice.10.bc"}) {
      const auto owners = distributions.owners(root + file);
      if (!owners.empty()) return owners.front();
    }
    const std::string package = root.find("/triton/") != std::string::npos ? "triton" : "";
    if (!package.empty()) return distributions.find(package);
    return distributions.find(root.ends_with("cu13") ? "nvidia-cuda-nvcc"
                                                     : "nvidia-cuda-nvcc-cu12");
  }

  const Tree& tree_;
};

}  // namespace

ToolkitSearch search_toolkit(const Tree& tree, const std::map<std::string, std::string>& variables,
                             const cuda::FrameworkBuild& build) {
  ToolkitSearch result;
  for (const Place& place : places_of(variables, build)) {
    const std::string directory = place.root + "/nvvm/libdevice";
    const auto status = tree.stat(directory);
    if (!status || !status->is_directory()) {
      result.outcomes.push_back(
          fmt::format("no nvvm/libdevice in {} ({})", place.root, place.because));
      continue;
    }
    result.taken = place.root;
    result.complete = tree.stat(directory + "/libdevice.10.bc").has_value();
    result.has_ptxas = tree.stat(place.root + "/bin/ptxas").has_value();
    if (!result.complete)
      result.outcomes.push_back(
          fmt::format("{} ({}) is taken, but has no libdevice.10.bc", directory, place.because));
    return result;
  }
  return result;
}

std::vector<Toolkit> find_toolkits(const Tree& tree, const Interpreter& interpreter,
                                   const Distributions& distributions,
                                   const std::map<std::string, std::string>& variables) {
  ToolkitFinder finder(tree);
  for (const std::string& site : interpreter.site_directories)
    finder.look_at_wheels(site, distributions);
  const bool is_conda = interpreter.kind == EnvironmentKind::kConda;
  finder.look_at(interpreter.prefix, is_conda ? "conda" : "the environment", 0);
  finder.look_at(interpreter.base_prefix, is_conda ? "conda" : "the environment's base", 0);
  finder.look_at("/usr/local/cuda", "the system", 0);
  finder.look_at("/opt/cuda", "the system", 0);
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    finder.look_at(variable_of(variables, name), name, 0);
  finder.look_at_versions("/usr/local");
  finder.look_at("/usr/lib/cuda", "the system", 0);
  finder.look_at("/usr", "the system", 0);
  return std::move(finder.found);
}

std::string find_on_path(const Tree& tree, const std::string& path, const std::string& program) {
  for (const std::string_view directory : split(path, ':')) {
    std::string place = fmt::format("{}/{}", directory, program);
    if (directory.empty()) continue;
    const auto status = tree.stat(place);
    if (status && status->is_regular() && (status->mode & 0111)) return place;
  }
  return "";
}

}  // namespace cohabit
