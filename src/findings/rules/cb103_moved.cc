#include <fmt/format.h>

#include "findings/rules/rules.h"
#include "findings/words.h"

namespace cohabit::rules {
namespace {

std::vector<Finding> check(const Case& examined) {
  std::vector<Finding> findings;
  for (const Verdict verdict : {Verdict::kMoved, Verdict::kDeadSplit}) {
    for (auto groups : merge_groups(examined, verdict, false)) {
      // Classes of the C++ runtime that nobody can notice are not worth a line.
      std::erase_if(groups, [&](const CaptureGroup* group) {
        return examined.process.is_cpp_runtime(group->consumer);
      });
      if (groups.empty()) continue;
      Finding finding;
      finding.severity = Severity::kNote;
      finding.headline = fmt::format(
          "{} serves {} in place of {}{}{}", short_name(examined.process, groups.front()->provider),
          groups.size() == 1 ? "one family of references"
                             : fmt::format("{} families of references", groups.size()),
          groups.size() == 1 ? "its own library" : "their own libraries",
          verdict == Verdict::kMoved ? ", as a whole" : "; what stays behind is not used",
          when_imported(examined));
      describe_groups(examined, groups, finding);
      findings.push_back(std::move(finding));
    }
  }
  return findings;
}

}  // namespace

const Rule kCb103 = {
    "CB103",
    "moved-as-a-whole",
    Severity::kNote,
    "References went to another copy together, or the split copy is not used by anyone.",
    "  All references of an object to a family bind to another copy than its own, or a library's "
    "inner\n"
    "  references are split but nobody enters it, and nobody can, since the provider is global.",
    "  It works as long as the other copy has what the caller expects. It explains what is called "
    "in a\n"
    "  stack trace.",
    "  `import tensorflow; import paddle`: 13 zlib symbols of Python's zlib module and 77 of 80 "
    "of\n"
    "  pillow's libzstd bind to libtensorflow_framework.so.2.",
    "  Nothing needs to be done.",
    "  Whether the copies have the same version is not compared.",
    check,
};

}  // namespace cohabit::rules
