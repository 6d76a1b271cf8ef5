#include "cli/deep_check.h"

#include <algorithm>
#include <set>
#include <utility>

#include "actions/check/renamed.h"
#include "actions/check/staged_environment.h"
#include "cli/kept_environment.h"
#include "cli/worse.h"

namespace cohabit {

Result<void> look_deeper(const check::Installer& installer, const Interpreter& python,
                         const check::Request& request, check::Outcome& outcome) {
  const auto staged = check::StagedEnvironment::make(python);
  if (!staged) return tl::unexpected<Error>(staged.error());
  if (auto done = staged->install(installer, request); !done) return done;
  const auto examine = [](const std::string& place) -> Result<Examination> {
    const auto environment = find_kept_environment(place);
    if (!environment) return tl::unexpected<Error>(environment.error());
    return examine_kept(*environment, true);
  };
  const auto before = examine(python.executable);
  if (!before) return tl::unexpected<Error>(before.error());
  auto after = examine(staged->python());
  if (!after) return tl::unexpected<Error>(after.error());
  std::set<std::pair<std::string, Severity>> known;
  for (size_t i = 0; i < before->findings.size(); i++)
    known.insert(key_of(before->findings[i], before->fingerprints[i]));
  // uv installs in parallel: whose file lies in the copy is chance, and the prediction knows it.
  const auto is_overwritten = [](const Finding& finding) { return finding.code == "FI001"; };
  const bool by_chance =
      installer.tool == check::Tool::kUv &&
      std::any_of(outcome.findings.begin(), outcome.findings.end(), is_overwritten);
  std::erase_if(outcome.findings,
                [&](const Finding& finding) { return !by_chance || !is_overwritten(finding); });
  for (size_t i = 0; i < after->findings.size(); i++) {
    if (by_chance && is_overwritten(after->findings[i])) continue;
    if (known.contains(key_of(after->findings[i], after->fingerprints[i]))) continue;
    check::rename_paths(after->findings[i], staged->prefix(), python.prefix);
    outcome.findings.push_back(std::move(after->findings[i]));
  }
  return {};
}

}  // namespace cohabit
