#include "cli/loaded_files.h"

#include <algorithm>

#include "sim/mapped_files.h"

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

bool reaches(const Reach& reach, const LoadedFiles& loaded,
             const std::unordered_set<std::string>& distributions) {
  return has_one_of(loaded, reach.files) &&
         (reach.distributions.empty() ||
          std::any_of(reach.distributions.begin(), reach.distributions.end(),
                      [&](const std::string& name) { return distributions.contains(name); }));
}

}  // namespace

LoadedFiles loaded_files(const Sequence& sequence, const sim::Simulation& simulation) {
  LoadedFiles loaded = loaded_files(sequence.plan, {});
  for (const std::string_view file : sim::mapped_files(simulation)) loaded.insert(file);
  return loaded;
}

LoadedFiles loaded_files(const std::optional<python::Plan>& plan,
                         const std::vector<std::string>& mapped) {
  LoadedFiles loaded(mapped.begin(), mapped.end());
  if (plan) loaded.reserve(loaded.size() + plan->modules.size());
  if (plan)
    for (const python::PlannedModule& module : plan->modules) loaded.insert(module.path);
  return loaded;
}

bool loads_broken(const LoadedFiles& loaded, const Finding& finding) {
  return std::any_of(finding.broken.begin(), finding.broken.end(),
                     [&](const std::string& path) { return loaded.contains(path); });
}

void note_broken(const LoadedFiles& loaded, report::Report& report, report::Order& order) {
  for (Finding& finding : report.findings) {
    if (!loads_broken(loaded, finding)) continue;
    order.findings.push_back(finding.id);
    if (finding.severity == Severity::kError) order.phase = report::kAtImport;
    if (!finding.imports.empty() || !finding.program.empty()) continue;
    finding.imports = order.imports;
    finding.program = order.program;
  }
}

void note_reach(const World& world, const LoadedFiles& loaded, report::Report& report) {
  const auto is_settled = [](const Finding& finding) {
    return finding.reach.files.empty() || finding.reach.is_met;
  };
  if (std::all_of(report.findings.begin(), report.findings.end(), is_settled)) return;
  std::unordered_set<std::string> distributions;
  for (const std::string_view path : loaded)
    for (const Distribution* owner : world.distributions.owners(std::string(path)))
      distributions.insert(owner->name);
  for (Finding& finding : report.findings)
    if (!is_settled(finding)) finding.reach.is_met = reaches(finding.reach, loaded, distributions);
}

void soften_what_is_not_loaded(report::Report& report) {
  for (Finding& finding : report.findings) {
    if (finding.severity != Severity::kError) continue;
    const bool met = !finding.imports.empty() || !finding.program.empty();
    const bool spares = !finding.broken.empty() && !met;
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
