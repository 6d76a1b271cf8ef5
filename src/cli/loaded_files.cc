#include "cli/loaded_files.h"

#include <algorithm>
#include <optional>

#include "findings/words.h"

namespace cohabit {
namespace {

// Each of these, or a directory above it, may be among the files.
bool has_one_of(const LoadedFiles& loaded, const std::vector<std::string>& files) {
  const LoadedFiles wanted(files.begin(), files.end());
  return std::any_of(loaded.begin(), loaded.end(), [&](std::string_view path) {
    while (!path.empty() && !wanted.contains(path))
      path = path.substr(0, path.rfind('/') == path.npos ? 0 : path.rfind('/'));
    return !path.empty();
  });
}

// The distributions that a process loads something of.
class LoadedDistributions {
 public:
  LoadedDistributions(const World& world, const LoadedFiles& loaded)
      : world_(world), loaded_(loaded) {}

  bool has_one_of(const std::vector<std::string>& names) {
    if (!names_) {
      names_.emplace();
      for (const std::string_view path : loaded_)
        for (const Distribution* owner : world_.distributions.owners(std::string(path)))
          names_->insert(owner->name);
    }
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return names_->contains(name); });
  }

 private:
  const World& world_;
  const LoadedFiles& loaded_;
  std::optional<std::unordered_set<std::string>> names_;  // asked for rarely
};

}  // namespace

LoadedFiles loaded_files(const std::optional<python::Plan>& plan,
                         const std::vector<std::string>& mapped) {
  LoadedFiles loaded(mapped.begin(), mapped.end());
  if (plan) loaded.reserve(loaded.size() + plan->modules.size());
  if (plan)
    for (const python::PlannedModule& module : plan->modules) loaded.insert(module.path);
  return loaded;
}

namespace {

// Whether one of these files is what a module would be.
bool would_be(const std::vector<std::string>& files, std::string module) {
  std::replace(module.begin(), module.end(), '.', '/');
  const std::string place = "/" + module;
  return std::any_of(files.begin(), files.end(), [&](const std::string& file) {
    return file.ends_with(place + ".py") || file.ends_with(place + "/__init__.py");
  });
}

// A module that is not found, and that one of these files would be: they are lost. Or of which a
// directory is left, that is imported as a namespace.
bool misses_one_of(const std::optional<python::Plan>& plan, const std::vector<std::string>& files) {
  if (!plan || files.empty()) return false;
  for (const std::string* words : {&plan->failure, &plan->failure_cause}) {
    const std::string module = missing_module(*words);
    if (!module.empty() && would_be(files, module)) return true;
  }
  for (const python::PlannedModule& module : plan->modules)
    if (module.kind == python::ModuleKind::kNamespace && would_be(files, module.name)) return true;
  return false;
}

}  // namespace

bool loads_broken(const LoadedFiles& loaded, const Finding& finding) {
  return std::any_of(finding.broken.begin(), finding.broken.end(),
                     [&](const std::string& path) { return loaded.contains(path); });
}

void note_broken(const LoadedFiles& loaded, const std::optional<python::Plan>& plan,
                 report::Report& report, report::Order& order) {
  for (Finding& finding : report.findings) {
    if (!loads_broken(loaded, finding) && !misses_one_of(plan, finding.broken)) continue;
    order.findings.push_back(finding.id);
    if (finding.severity == Severity::kError) order.phase = report::kAtImport;
    if (!finding.imports.empty() || !finding.program.empty()) continue;
    finding.imports = order.imports;
    finding.program = order.program;
  }
}

void note_reach(const World& world, const LoadedFiles& loaded, report::Report& report) {
  LoadedDistributions distributions(world, loaded);
  for (Finding& finding : report.findings) {
    Reach& reach = finding.reach;
    if (reach.files.empty() || reach.is_met) continue;
    reach.is_met = has_one_of(loaded, reach.files) &&
                   (reach.distributions.empty() || distributions.has_one_of(reach.distributions));
  }
}

void soften_what_is_not_loaded(report::Report& report) {
  for (Finding& finding : report.findings) {
    if (finding.severity != Severity::kError) continue;
    const bool met = !finding.imports.empty() || !finding.program.empty();
    if (met) continue;
    const bool spares = !finding.broken.empty();
    const bool is_out_of_reach = !finding.reach.files.empty() && !finding.reach.is_met;
    if (!spares && !is_out_of_reach) continue;
    finding.severity = Severity::kWarning;
    finding.evidence.push_back(
        {"file",
         finding.reach.distributions.empty()
             ? "what is examined here loads none of these files"
             : "what is examined here does not load them for a package that they were taken from",
         "", "", -1, -1, ""});
  }
}

}  // namespace cohabit
