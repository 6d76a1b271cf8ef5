// One process can hold two CUDA runtimes, since their libraries have different names; whether they
// get along is for the rules that look at a process. But who installs two majors has libraries of
// both that are not versioned by CUDA (cuDNN, NCCL), and one driver that must be new enough for
// both.
#include <fmt/format.h>

#include <map>
#include <set>

#include "facts/python/requirement.h"
#include "findings/rules/rules.h"

namespace cohabit::rules {
namespace {

// 13 of "…/libcudart.so.13" and of "…/libcudart-a7b20f20.so.13.0"; 0 if it is no CUDA runtime.
int cuda_major(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (!name.starts_with("libcudart.") && !name.starts_with("libcudart-")) return 0;
  const size_t at = name.find(".so.");
  if (at == name.npos) return 0;
  int major = 0;
  for (size_t i = at + 4; i < name.size() && name[i] >= '0' && name[i] <= '9' && major < 1000; i++)
    major = major * 10 + (name[i] - '0');
  return major;
}

struct Provider {
  const Distribution* distribution;
  std::string path;
};

bool requires_it(const EnvironmentCase& examined, const Distribution& who,
                 const Distribution& what) {
  const MarkerEnvironment environment = MarkerEnvironment::of(examined.interpreter);
  for (const std::string& text : who.requires_dist) {
    const auto requirement = PackageRequirement::parse(text);
    if (!requirement || normal_name(requirement->name) != normal_name(what.name)) continue;
    const bool by_extra = requirement->marker.find("extra") != std::string::npos;
    if (by_extra || requirement->applies(environment, "")) return true;
  }
  return false;
}

// Distributions without native files (cuda-toolkit) only pass the wish on: who asks for those.
std::set<std::string> requirers_of(const EnvironmentCase& examined, const Distribution& provider,
                                   int depth = 0) {
  std::set<std::string> names;
  for (const Distribution& other : examined.all()) {
    if (!requires_it(examined, other, provider)) continue;
    std::set<std::string> deeper;
    if (other.native_files.empty() && depth < 2) deeper = requirers_of(examined, other, depth + 1);
    if (deeper.empty()) deeper.insert(label(other));
    names.merge(deeper);
  }
  return names;
}

std::vector<Finding> check(const EnvironmentCase& examined) {
  std::map<int, std::vector<Provider>> majors;
  for (const Distribution& distribution : examined.all())
    for (const std::string& path : distribution.native_files)
      if (const int major = cuda_major(path)) majors[major].push_back({&distribution, path});
  if (majors.size() < 2) return {};

  Finding finding;
  finding.severity = Severity::kNote;
  finding.certainty = Certainty::kDeclared;
  std::vector<std::string> parts;
  for (const auto& [major, providers] : majors) {
    std::set<std::string> names;
    for (const Provider& provider : providers) {
      finding.libraries.push_back(library_of(*provider.distribution, provider.path));
      const std::set<std::string> who = requirers_of(examined, *provider.distribution);
      const std::vector<std::string> requirers(who.begin(), who.end());
      names.insert(requirers.begin(), requirers.end());
      finding.evidence.push_back(fact(
          "declared",
          fmt::format("CUDA {}: {} of {}{}", major, provider.path, label(*provider.distribution),
                      requirers.empty() ? "" : ", required by " + list_some(requirers, 5)),
          provider.path));
      if (requirers.empty()) names.insert(label(*provider.distribution));
    }
    parts.push_back(fmt::format("CUDA {} for {}", major, list_some({names.begin(), names.end()})));
  }
  finding.headline = fmt::format("{} CUDA runtimes are installed: {}", majors.size(),
                                 fmt::format("{}", fmt::join(parts, "; ")));
  finding.help.push_back(
      {"where there is a choice, take builds for one CUDA major", "", Safety::kManual});
  return {std::move(finding)};
}

}  // namespace

const Rule kPy003 = {
    "PY003",
    "several-cuda-majors",
    Severity::kNote,
    "Runtimes of several CUDA majors are installed in one environment.",
    "  Files libcudart.so.N of installed distributions with different N, and who requires them.",
    "  No fault by itself. Libraries that both majors bring under one name overwrite each other "
    "(FI001), a\n"
    "  process may bind to the wrong one (CB101, CB102), and the driver must be new enough for the "
    "later.",
    "  torch 2.15.0 (CUDA 13) and tensorflow[and-cuda] 2.21.0 (CUDA 12).",
    "  Where there is a choice, install builds for one CUDA major.",
    "  A runtime that is linked statically has no file of its own.",
    nullptr,
    check,
};

}  // namespace cohabit::rules
