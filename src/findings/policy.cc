#include "findings/policy.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "facts/python/requirement.h"
#include "findings/fingerprint.h"
#include "findings/rules/rules.h"

namespace cohabit {
namespace {

bool fits(const Library& library, const Ignore& ignore) {
  const std::string name = library.path.substr(library.path.rfind('/') + 1);
  if (!ignore.library.empty() && ::fnmatch(ignore.library.c_str(), name.c_str(), 0) != 0)
    return false;
  return ignore.distribution.empty() ||
         normal_name(ignore.distribution) == normal_name(library.distribution);
}

bool fits(const Finding& finding, const Ignore& ignore) {
  if (finding.code != ignore.code) return false;
  for (const std::string& name : ignore.imports)
    if (std::find(finding.imports.begin(), finding.imports.end(), name) == finding.imports.end())
      return false;
  if (ignore.library.empty() && ignore.distribution.empty()) return true;
  return std::any_of(finding.libraries.begin(), finding.libraries.end(),
                     [&](const Library& library) { return fits(library, ignore); });
}

Finding unused(const Ignore& ignore) {
  Finding finding;
  finding.code = rules::kIo902.code;
  finding.slug = rules::kIo902.slug;
  finding.severity = Severity::kNote;
  finding.certainty = Certainty::kObserved;
  finding.headline = fmt::format("an ignore of {} is not needed here ({}: {})", ignore.code,
                                 ignore.place, ignore.reason);
  finding.place = ignore.source;
  finding.help.push_back({"remove it, or narrow what it was meant for", "", Safety::kManual});
  return finding;
}

// True: it stays.
bool set_severity(const Policy& policy, Finding& finding) {
  const auto found = policy.severities.find(finding.code);
  if (found == policy.severities.end()) return true;
  if (!found->second) return false;
  finding.severity = *found->second;
  return true;
}

}  // namespace

std::vector<Suppressed> apply_policy(const Policy& policy, const std::string& environment,
                                     std::vector<Finding>& findings) {
  std::vector<Suppressed> suppressed;
  std::vector<Finding> left;
  std::vector<bool> used(policy.ignores.size());
  for (Finding& finding : findings) {
    const Ignore* by = nullptr;
    for (size_t i = 0; i < policy.ignores.size(); i++) {
      if (!fits(finding, policy.ignores[i])) continue;
      used[i] = true;
      if (!by) by = &policy.ignores[i];
    }
    if (!set_severity(policy, finding)) continue;
    if (by)
      suppressed.push_back({std::move(finding), SuppressedBy::kIgnore, by->reason});
    else if (policy.baseline.contains(fingerprint(finding, environment)))
      suppressed.push_back({std::move(finding), SuppressedBy::kBaseline, "in the baseline"});
    else
      left.push_back(std::move(finding));
  }
  for (size_t i = 0; i < used.size(); i++)
    if (Finding finding = unused(policy.ignores[i]); !used[i] && set_severity(policy, finding))
      left.push_back(std::move(finding));
  findings = std::move(left);
  return suppressed;
}

}  // namespace cohabit
