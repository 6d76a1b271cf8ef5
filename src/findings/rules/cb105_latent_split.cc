#include <fmt/format.h>

#include "findings/rules/rules.h"
#include "findings/words.h"

namespace cohabit::rules {
namespace {

std::vector<Finding> check(const Case& examined) {
  std::vector<Finding> findings;
  for (const auto& groups : merge_groups(examined, Verdict::kLatentSplit, true)) {
    const CaptureGroup& group = *groups.front();
    Finding finding;
    const bool is_asleep = group.self() && group.entered_by.empty();
    finding.severity = is_asleep ? Severity::kNote : Severity::kWarning;
    finding.headline = fmt::format(
        "{} has bound part of {} to {}: who uses it next works with both{}",
        short_name(examined.process, group.consumer), family_name(examined.process, group),
        short_name(examined.process, group.provider), when_imported(examined));
    describe_groups(examined, groups, finding);
    describe_provider(examined, group, finding);
    add_observed_end(examined, finding);
    advise(examined, groups, finding);
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

const Rule kCb105 = {
    "CB105",
    "latent-split",
    Severity::kWarning,
    "A library is split, and nothing that was asked for uses it yet.",
    "  As CB101 for a library's references to itself, but no import of the statement enters it: "
    "only\n"
    "  what the provider's own distribution brings along does (warning), or nobody at all (note).\n"
    "  Or the C functions of a library are split for one of a package that no import asks for, "
    "and\n"
    "  that something loads because it is installed (warning).",
    "  The process runs until somebody calls into the library: the next import, or a function of "
    "this\n"
    "  one that was not used so far.",
    "  `import paddle` (2.6.2) returns. `import zlib; zlib.decompress(...)` after it dies, and so "
    "does\n"
    "  writing a PNG with cv2 or PIL.",
    "  As for CB101: map the library earlier, by LD_PRELOAD or by importing what needs it first.",
    "  What is asked for is known by the names of the imports and the metadata of distributions.",
    check,
};

}  // namespace cohabit::rules
