#include <fmt/format.h>

#include "findings/rules/rules.h"
#include "findings/words.h"

namespace cohabit::rules {
namespace {

std::vector<Finding> check(const Case& examined) {
  std::vector<Finding> findings;
  for (const auto& groups : merge_groups(examined, Verdict::kByDesign, false)) {
    Finding finding;
    finding.severity = Severity::kNote;
    finding.certainty = Certainty::kDeclared;
    finding.headline = fmt::format("{} captures calls of libraries that it is made for{}",
                                   short_name(examined.process, groups.front()->provider),
                                   when_imported(examined));
    describe_groups(examined, groups, finding);
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

const Rule kCb104 = {
    "CB104",
    "captured-by-design",
    Severity::kNote,
    "A capture between distributions that are made for each other.",
    "  The captured library's distribution asks for the provider's (a plug-in and its framework), "
    "or\n"
    "  the provider's asks for all captured ones and exports stubs for them, or the stubs name the "
    "very\n"
    "  library that answers instead of them.",
    "  It is how these packages work. The note is there so that a reader of LD_DEBUG's output "
    "finds the\n"
    "  explanation.",
    "  TensorFlow alone with its own CUDA libraries opened: 75 of 77 cuBLASLt references of\n"
    "  libcublas.so.12 bind to stubs in libtensorflow_framework.so.2.",
    "  Nothing needs to be done.",
    "  Believes the metadata: a requirement in an extra counts as made for each other.",
    check,
};

}  // namespace cohabit::rules
