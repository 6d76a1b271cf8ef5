#include "facts/cuda/builds.h"

#include <fmt/format.h>

#include <algorithm>

namespace cohabit::cuda {
namespace {

constexpr uint64_t kSmallFile = 1 << 18;

// What is assigned to `name` in Python text: `12.8` of "cuda: Optional[str] = '12.8'", `None`.
std::string assigned(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.starts_with(name) || line.size() == name.size() ||
        std::string_view(" :=").find(line[name.size()]) == line.npos)
      continue;
    const size_t equals = line.find('=');
    if (equals == line.npos) continue;
    line.remove_prefix(equals + 1);
    const size_t begin = line.find_first_not_of(" '\"");
    if (begin == line.npos) return "";
    return std::string(line.substr(begin, line.find_first_of(" '\"\r#", begin) - begin));
  }
  return "";
}

// What stands behind a key in "[('cuda_version', '12.5.1'), ('is_cuda_build', True)]".
std::string paired(std::string_view text, const std::string& key) {
  const size_t at = text.find("'" + key + "',");
  if (at == text.npos) return "";
  text.remove_prefix(at + key.size() + 3);
  const size_t begin = text.find_first_not_of(" '");
  if (begin == text.npos) return "";
  return std::string(text.substr(begin, text.find_first_of(" '),", begin) - begin));
}

class BuildReader {
 public:
  BuildReader(const Tree& tree, const Interpreter& interpreter, const Distributions& distributions)
      : tree_(tree), interpreter_(interpreter), distributions_(distributions) {}

  void read_torch() {
    const auto text = find_text("torch/version.py");
    if (!text) return;
    FrameworkBuild build = make("torch", {"torch"});
    build.cuda = parse_cuda_version(assigned(*text, "cuda"));
    const std::string hip = assigned(*text, "hip");
    build.is_cpu_only = assigned(*text, "cuda") == "None" && (hip.empty() || hip == "None");
    add(std::move(build));
  }

  void read_paddle() {
    const auto text = find_text("paddle/version/__init__.py");
    if (!text) return;
    FrameworkBuild build = make("paddle", {"paddlepaddle-gpu", "paddlepaddle"});
    const std::string value = assigned(*text, "cuda_version");
    build.cuda = parse_cuda_version(value);
    build.is_cpu_only = value == "False";
    add(std::move(build));
  }

  void read_tensorflow() {
    const auto text = find_text("tensorflow/python/platform/build_info.py");
    if (!text) return;
    FrameworkBuild build =
        make("tensorflow", {"tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tf-nightly"});
    build.cuda = parse_cuda_version(paired(*text, "cuda_version"));
    build.is_cpu_only =
        paired(*text, "is_cuda_build") == "False" && paired(*text, "is_rocm_build") != "True";
    add(std::move(build));
  }

  void read_onnxruntime() {
    const auto text = find_text("onnxruntime/capi/build_and_package_info.py");
    if (!text) return;
    const std::string package = assigned(*text, "package_name");
    FrameworkBuild build = make("onnxruntime", {package});
    build.cuda = parse_cuda_version(assigned(*text, "cuda_version"));
    build.is_cpu_only = package == "onnxruntime";
    add(std::move(build));
  }

  // The CUDA part of JAX is a plugin, a distribution of its own for each CUDA major.
  void read_jax() {
    const Distribution* core = distributions_.find("jaxlib");
    if (!core) return;
    bool has_plugin = core->version.find("cuda") != std::string::npos;
    for (const Distribution& distribution : distributions_.all()) {
      has_plugin = has_plugin || is_jax_plugin(distribution.name);
      for (const int major : {11, 12, 13}) {
        const std::string name = "jax-cuda" + std::to_string(major) + "-plugin";
        if (&distribution != distributions_.find(name)) continue;
        FrameworkBuild build = make("jax", {name});
        build.cuda = CudaVersion{major, kAnyMinor};
        source_ = distribution.metadata;
        add(std::move(build));
      }
    }
    if (has_plugin) return;
    FrameworkBuild build = make("jax", {"jaxlib"});
    build.is_cpu_only = true;
    source_ = core->metadata;
    add(std::move(build));
  }

  void read_cupy() {
    for (const int major : {11, 12, 13}) {
      const std::string name = "cupy-cuda" + std::to_string(major) + "x";
      const Distribution* distribution = distributions_.find(name);
      if (!distribution) continue;
      FrameworkBuild build = make("cupy", {name});
      build.cuda = CudaVersion{major, kAnyMinor};
      source_ = distribution->metadata;
      add(std::move(build));
    }
  }

  std::vector<FrameworkBuild> builds;

 private:
  static bool is_jax_plugin(const std::string& name) {
    return name.starts_with("jax-") || name.starts_with("jax_")
               ? name.find("plugin") != std::string::npos || name.find("pjrt") != std::string::npos
               : false;
  }

  std::optional<std::string> find_text(const std::string& file) {
    for (const std::string& site : interpreter_.site_directories) {
      source_ = fmt::format("{}/{}", site, file);
      if (auto text = tree_.read_text(source_, kSmallFile)) return text;
    }
    return std::nullopt;
  }
  FrameworkBuild make(std::string module, const std::vector<std::string>& names) const {
    FrameworkBuild build;
    build.module = std::move(module);
    for (const std::string& name : names)
      if (!build.distribution) build.distribution = distributions_.find(name);
    return build;
  }
  void add(FrameworkBuild build) {
    build.source = source_;
    builds.push_back(std::move(build));
  }

  const Tree& tree_;
  const Interpreter& interpreter_;
  const Distributions& distributions_;
  std::string source_;
};

}  // namespace

std::vector<FrameworkBuild> read_builds(const Tree& tree, const Interpreter& interpreter,
                                        const Distributions& distributions) {
  BuildReader reader(tree, interpreter, distributions);
  reader.read_torch();
  reader.read_paddle();
  reader.read_tensorflow();
  reader.read_jax();
  reader.read_onnxruntime();
  reader.read_cupy();
  return std::move(reader.builds);
}

}  // namespace cohabit::cuda
