// A wheel brings its CUDA libraries as wheels of their own (nvidia-cublas-cu12), and finds them by
// RUNPATH. LD_LIBRARY_PATH comes before RUNPATH, the wheels of the libraries have a RUNPATH that
// knows only their own directory, and a bare name that is opened later goes wherever ld.so looks
// first. So a toolkit of the system gets in front of what was installed for the framework, in part
// or as a whole.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "findings/rules/rules.h"
#include "findings/words.h"

namespace cohabit::rules {
namespace {

using sim::ObjectId;

std::string_view file_name(const std::string& path) {
  return std::string_view(path).substr(path.rfind('/') + 1);
}

// Installed files by the name under which ld.so would look for them, of these names.
class Installed {
 public:
  Installed(const Distributions& distributions, const std::unordered_set<std::string_view>& names) {
    if (names.empty()) return;
    for (const Distribution& distribution : distributions.all())
      for (const std::string& path : distribution.native_files)
        if (const auto name = file_name(path); names.contains(name))
          by_name_[name].push_back({&distribution, &path});
  }
  struct Copy {
    const Distribution* distribution;
    const std::string* path;
  };
  const std::vector<Copy>& find(std::string_view name) const {
    static const std::vector<Copy> kNone;
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? kNone : found->second;
  }

 private:
  std::unordered_map<std::string_view, std::vector<Copy>> by_name_;
};

// Whether the distribution of `object` asks for this one (or is it).
bool asks_for(const ProcessView& process, ObjectId object, const Distribution& wanted) {
  const Ownership& ownership = process.ownership();
  for (const uint32_t owner : ownership.owners(object)) {
    const OwnerDistribution& one = ownership.distributions[owner];
    if (one.name == wanted.name) return true;
    for (const uint32_t need : one.needs)
      if (ownership.distributions[need].name == wanted.name) return true;
  }
  return false;
}

// Somebody for whom the installed copy is there: who needed the object, or who needs it besides.
ObjectId deprived(const ProcessView& process, ObjectId object, const Distribution& wanted) {
  for (ObjectId id = 0; id < process.object_count(); id++) {
    if (!process.counts(id) || id == object) continue;
    const auto& dependencies = process.image(id).elf.dependencies;
    const std::string& requested = process.object(object).requested;
    const bool needs = process.object(object).by == id ||
                       std::any_of(dependencies.begin(), dependencies.end(),
                                   [&](const auto& one) { return one.name == requested; });
    if (needs && asks_for(process, id, wanted)) return id;
  }
  return kNone;
}

std::string way_to(const Case& examined, const std::string& path) {
  const std::string directory = path.substr(0, path.rfind('/'));
  for (const auto& [name, value] : examined.trace.start.environment) {
    if (name != "LD_LIBRARY_PATH") continue;
    for (size_t begin = 0; begin <= value.size();) {
      const size_t end = std::min(value.find_first_of(":;", begin), value.size());
      std::string part = value.substr(begin, end - begin);
      while (part.size() > 1 && part.back() == '/') part.pop_back();
      if (part == directory) return "LD_LIBRARY_PATH";
      begin = end + 1;
    }
  }
  return "";
}

struct Shadowed {
  ObjectId object;
  Installed::Copy copy;
  ObjectId by;
};

std::vector<Shadowed> find_shadowed(const Case& examined) {
  const ProcessView& process = examined.process;
  std::vector<ObjectId> foreign;
  std::unordered_set<std::string_view> names;
  for (ObjectId id = 0; id < process.object_count(); id++) {
    if (!process.counts(id) || !process.ownership().owners(id).empty()) continue;
    foreign.push_back(id);
    names.insert(file_name(process.image(id).path));
  }
  const Installed installed(*examined.distributions, names);
  std::vector<Shadowed> found;
  for (const ObjectId id : foreign)
    for (const auto& copy : installed.find(file_name(process.image(id).path))) {
      const ObjectId by = deprived(process, id, *copy.distribution);
      if (by == kNone) continue;
      found.push_back({id, copy, by});
      break;
    }
  return found;
}

std::vector<Finding> check(const Case& examined) {
  if (!examined.distributions) return {};
  const ProcessView& process = examined.process;
  std::map<std::string, Finding> findings;  // by the directory that is in front
  for (const Shadowed& one : find_shadowed(examined)) {
    const std::string path = path_of(process, one.object);
    Finding& finding = findings[path.substr(0, path.rfind('/'))];
    finding.severity = Severity::kWarning;
    finding.libraries.push_back(library_of(process, one.object));
    finding.libraries.push_back(library_of(*one.copy.distribution, *one.copy.path));
    const std::string way = way_to(examined, process.image(one.object).path);
    finding.evidence.push_back(
        fact("place", fmt::format("{} gets it from {}{}", short_name(process, one.by), path,
                                  way.empty() ? "" : ", found by " + way)));
    finding.evidence.push_back(
        fact("place", fmt::format("{} brings", label(*one.copy.distribution)), *one.copy.path));
    if (!finding.headline.empty()) continue;
    finding.headline =
        fmt::format("{} of {} shadows the one that {} brings", short_name(process, one.object),
                    path.substr(0, path.rfind('/')), label(*one.copy.distribution));
    finding.help.push_back({way.empty() ? "make ld.so look into the wheel's directory first"
                                        : "take the directory out of LD_LIBRARY_PATH",
                            "", Safety::kManual});
  }
  std::vector<Finding> result;
  result.reserve(findings.size());
  for (auto& [directory, finding] : findings) result.push_back(std::move(finding));
  return result;
}

}  // namespace

const Rule kLd207 = {
    "LD207",
    "shadowed-library",
    Severity::kWarning,
    "A library that was installed for a framework is shadowed by another copy.",
    "  A library outside of all distributions is loaded where the one that needs it belongs to a "
    "distribution\n"
    "  that requires another one which brings a file of that name.",
    "  Parts of one CUDA in two versions: cuDNN with `CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH`, "
    "cuBLAS with\n"
    "  symbols that cuBLASLt does not have. Or nothing at all, until one of them is updated.",
    "  LD_LIBRARY_PATH=/usr/local/cuda/lib64 and a framework with nvidia-cublas-cu12.",
    "  Take the system's directory out of LD_LIBRARY_PATH for this program.",
    "  Whether the two versions get along is not judged. Requirements in extras count.",
    check,
};

}  // namespace cohabit::rules
