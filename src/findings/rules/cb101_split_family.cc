#include <fmt/format.h>

#include "findings/rules/rules.h"
#include "findings/words.h"

namespace cohabit::rules {
namespace {

std::string headline(const Case& examined, const CaptureGroup& group) {
  const std::string own = short_name(examined.process, group.own);
  const std::string provider = short_name(examined.process, group.provider);
  if (group.self() && group.family.empty())
    return fmt::format("{} is split between its own functions and those of {}{}", own, provider,
                       when_imported(examined));
  return fmt::format("{} is split between {} and {}{}{}", family_name(examined.process, group), own,
                     provider,
                     group.self() ? "" : " for " + short_name(examined.process, group.consumer),
                     when_imported(examined));
}

std::vector<Finding> check(const Case& examined) {
  std::vector<Finding> findings;
  for (const auto& groups : merge_groups(examined, Verdict::kLiveSplit, true)) {
    const CaptureGroup& group = *groups.front();
    // Part of a capture across versions: told there.
    if (group.family.empty() && crosses_elsewhere(examined, group.provider)) continue;
    Finding finding;
    finding.severity = Severity::kError;
    finding.code = kCb101.code;
    finding.headline = headline(examined, group);
    describe_groups(examined, groups, finding);
    describe_provider(examined, group, finding);
    add_observed_end(examined, finding);
    advise(examined, groups, finding);
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

const Rule kCb101 = {
    "CB101",
    "split-family",
    Severity::kError,
    "A family of functions is split between two copies that work on the same objects.",
    "  References of one object to one family (the C functions of a library, the members of a C++\n"
    "  namespace or class) are bound partly to its own provider, the first definition in its own\n"
    "  DT_NEEDED closure, and partly to a copy that another package exports. Or: a library's\n"
    "  references to itself are bound to another copy in part, and others call into it.",
    "  Both copies then work on the same structures. If they differ in version, memory of one is\n"
    "  freed or interpreted by the other: crashes in free(), wrong results, truncated files. The\n"
    "  import often succeeds and the first computation dies.",
    "  `import paddleocr` (paddlepaddle-gpu 2.6.2): libpaddle.so exports a zlib of its own. "
    "libz.so.1\n"
    "  is first mapped in the scope of libpaddle.so, so 17 of its 30 references to itself go "
    "there.\n"
    "  inflateInit2_ (libz.so.1) calls inflateReset2 (libpaddle.so).",
    "  When the provider is global (RTLD_GLOBAL): import the other package first, or have the "
    "provider\n"
    "  opened without RTLD_GLOBAL. When the library was first mapped in the provider's scope: map "
    "it\n"
    "  earlier, by LD_PRELOAD or by importing something that needs it first.",
    "  Which functions are called is not known from files, so a split that nobody exercises is "
    "reported\n"
    "  too. Two copies of the same version split without harm. For the C++ runtime itself a class "
    "counts\n"
    "  only if the machine code leads from an entered member to a captured one of other code; for "
    "who\n"
    "  uses a class of it, only if the captured members are other code and not more than those "
    "that "
    "stay.",
    check,
};

}  // namespace cohabit::rules
