#include "cli/deep_check.h"

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
  // Of overwritten files the prediction knows more than the copy: where an installer works in
  // parallel, as uv does, whose file lies there is chance.
  const auto is_overwritten = [](const Finding& finding) { return finding.code == "FI001"; };
  std::erase_if(outcome.findings, [&](const Finding& finding) { return !is_overwritten(finding); });
  const bool is_foretold = !outcome.findings.empty();
  for (size_t i = 0; i < after->findings.size(); i++) {
    if (is_foretold && is_overwritten(after->findings[i])) continue;
    if (known.contains(key_of(after->findings[i], after->fingerprints[i]))) continue;
    check::rename_paths(after->findings[i], staged->prefix(), python.prefix);
    outcome.findings.push_back(std::move(after->findings[i]));
  }
  return {};
}

}  // namespace cohabit
