#include <fmt/format.h>

#include <set>

#include "findings/rules/rules.h"
#include "findings/words.h"

namespace cohabit::rules {
namespace {

// Splits of C families by the same provider are the same cause; what it serves by design is shown
// beside them.
std::vector<const CaptureGroup*> with_companions(const Case& examined,
                                                 std::vector<const CaptureGroup*> groups) {
  const sim::ObjectId provider = groups.front()->provider;
  for (const CaptureGroup& group : examined.captures.groups) {
    const bool is_split =
        group.verdict == Verdict::kLiveSplit || group.verdict == Verdict::kAlikeSplit;
    const bool same_cause = is_split && group.family.empty();
    if (group.provider == provider && (same_cause || group.verdict == Verdict::kByDesign))
      groups.push_back(&group);
  }
  return groups;
}

std::string headline(const Case& examined, const std::vector<const CaptureGroup*>& groups) {
  std::set<sim::ObjectId> consumers, owns;
  for (const CaptureGroup* group : groups) {
    if (group->verdict == Verdict::kByDesign) continue;
    consumers.insert(group->consumer);
    owns.insert(group->own);
  }
  const CaptureGroup& group = *groups.front();
  const auto several = [&](size_t count, sim::ObjectId one) {
    return count == 1 ? short_name(examined.process, one) : fmt::format("{} libraries", count);
  };
  return fmt::format("{} captures calls of {} meant for {}{}",
                     short_name(examined.process, group.provider),
                     several(consumers.size(), group.consumer), several(owns.size(), group.own),
                     when_imported(examined));
}

std::vector<Finding> check(const Case& examined) {
  std::vector<Finding> findings;
  for (const auto& crossing : merge_groups(examined, Verdict::kVersionCrossing, false)) {
    const auto groups = with_companions(examined, crossing);
    Finding finding;
    finding.severity = Severity::kError;
    finding.headline = headline(examined, groups);
    describe_groups(examined, groups, finding);
    describe_provider(examined, *groups.front(), finding);
    add_observed_end(examined, finding);
    advise(examined, groups, finding);
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

const Rule kCb102 = {
    "CB102",
    "captured-across-versions",
    Severity::kError,
    "Calls built against one version of a library are bound to another's definitions.",
    "  At least half of the captured references of a group ask for a symbol version and are given "
    "a\n"
    "  definition without one, or ask without and are given a versioned one of another library.",
    "  glibc lets a definition without version satisfy any reference. That was meant for old "
    "libraries;\n"
    "  here it hands the calls of a library to stubs or copies of another major version that "
    "happen to\n"
    "  be in the global scope. Captured calls may crash, fail or be forwarded correctly: the "
    "loader\n"
    "  cannot tell, and says nothing.",
    "  `import tensorflow; import torch` (2.21, 2.15): libtensorflow_framework.so.2 is global and\n"
    "  exports unversioned stubs for CUDA 12. torch's CUDA 13 libraries bind 89 of 99 cudart and "
    "82 of\n"
    "  83 cuDNN symbols to them.",
    "  Have the provider opened without RTLD_GLOBAL, use builds for the same major version, or "
    "separate\n"
    "  environments.",
    "  The finding says captured, not crashes: what the captured calls do is not known from "
    "files.\n"
    "  Captures between distributions that ask for each other are by design (CB104).",
    check,
};

}  // namespace cohabit::rules
