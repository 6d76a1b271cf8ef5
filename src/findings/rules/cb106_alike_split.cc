#include <fmt/format.h>

#include <algorithm>

#include "findings/rules/rules.h"
#include "findings/words.h"

namespace cohabit::rules {
namespace {

std::vector<Finding> check(const Case& examined) {
  std::vector<Finding> findings;
  for (const auto& groups : merge_groups(examined, Verdict::kAlikeSplit, true)) {
    const CaptureGroup& group = *groups.front();
    // Part of a capture across versions: told there.
    if (group.family.empty() && crosses_elsewhere(examined, group.provider)) continue;
    Finding finding;
    const bool is_asleep = std::all_of(groups.begin(), groups.end(), [](const CaptureGroup* one) {
      return one->self() && one->entered_by.empty();
    });
    finding.severity = is_asleep ? Severity::kNote : Severity::kWarning;
    finding.headline =
        fmt::format("{} is split between two copies that lay out their objects alike, {} and {}{}",
                    family_name(examined.process, group), short_name(examined.process, group.own),
                    short_name(examined.process, group.provider), when_imported(examined));
    describe_groups(examined, groups, finding);
    describe_provider(examined, group, finding);
    add_observed_end(examined, finding);
    advise(examined, groups, finding);
    if (!examined.failed())
      finding.help.insert(finding.help.begin(),
                          {finding.help.empty()
                               ? "nothing needs to be done while both stay as they are"
                               : "nothing needs to be done while both stay as they are; what takes "
                                 "the split away:",
                           "", Safety::kManual});
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

const Rule kCb106 = {
    "CB106",
    "alike-split",
    Severity::kWarning,
    "A family of functions is split between two copies that lay out their objects alike.",
    "  As CB101 or CB105, but the machine code of both copies looks for the members of objects at "
    "the\n"
    "  same places: of the exported functions that both have, nine in ten share most of the "
    "offsets that\n"
    "  they read and write. And nothing was seen in them that is kept outside of these objects.",
    "  It works while both stay as they are. An update of either package can change the layout, "
    "and\n"
    "  this becomes CB101.",
    "  paddlepaddle 3.0.0 exports zlib 1.2.11, beside a system's 1.2.13: writing and reading PNG,\n"
    "  HDF5 and PDF after `import paddle` gives right values. With paddlepaddle 2.6.2 (zlib 1.2.8) "
    "it\n"
    "  crashes.",
    "  Nothing needs to be done. What takes a split away is as for CB101.",
    "  Of classes of the C++ runtime, what the runtime keeps outside of objects is not looked at.\n"
    "  x86-64 only; elsewhere the split is CB101. Builds of one version by different compilers "
    "can\n"
    "  look as different as two versions do: then too. What the same members mean is not compared, "
    "nor\n"
    "  how large objects are behind the last member that is reached; calls through tables of "
    "functions\n"
    "  are not followed.",
    check,
};

}  // namespace cohabit::rules
