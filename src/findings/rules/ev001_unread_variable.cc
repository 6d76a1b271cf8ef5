#include <fmt/format.h>

#include "findings/rules/rules.h"
#include "findings/variables.h"

namespace cohabit::rules {
namespace {

std::vector<Finding> check(const EnvironmentCase& examined) {
  std::vector<Finding> findings;
  const SetVariables set = judge_variables(examined);
  for (const auto& [name, meant] : set.misspelled) {
    Finding finding;
    finding.severity = Severity::kWarning;
    finding.certainty = Certainty::kTable;
    finding.headline = fmt::format("nobody here reads {}: {} is meant?", name, meant);
    finding.evidence.push_back(
        fact("search", fmt::format("{} stands in no file of this environment", name)));
    finding.help.push_back({fmt::format("rename it to {}", meant), "", Safety::kManual});
    findings.push_back(std::move(finding));
  }
  if (set.unread.empty()) return findings;
  Finding finding;
  finding.certainty = Certainty::kTable;
  finding.headline = fmt::format("{} set that nobody here reads: {}",
                                 set.unread.size() == 1 ? "a variable is" : "variables are",
                                 list_some(set.unread, 8));
  finding.evidence.push_back(
      fact("search",
           "neither the table of known variables nor the files of this environment name a "
           "reader"));
  findings.push_back(std::move(finding));
  return findings;
}

}  // namespace

const Rule kEv001 = {
    "EV001",
    "unread-variable",
    Severity::kWarning,
    "A variable for a framework is set that nobody here reads.",
    "  Variables that are set, have a framework's prefix, are not known (data/variables.tsv) and\n"
    "  stand in no Python file and no native file of the environment. A warning if there is a "
    "known\n"
    "  name that differs by one or two letters; else a note.",
    "  A setting without effect, and without a word: the program behaves as if it were not there.",
    "  TF_FORCE_GPU_ALOW_GROWTH=true",
    "  Correct the name, or remove the variable.",
    "  Names that are put together at run time are not found (but those of Paddle's and JAX's "
    "flags). "
    "Values\n"
    "  are not shown. The files are read only if a variable is set that the table does not know.",
    nullptr,
    check,
};

}  // namespace cohabit::rules
