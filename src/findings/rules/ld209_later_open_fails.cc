#include <fmt/format.h>

#include <map>

#include "base/paths.h"
#include "findings/rules/rules.h"
#include "findings/words.h"

namespace cohabit::rules {
namespace {

using python::OnFailure;
using sim::LaterOpen;

// What one library cannot open at this phase.
using Failures = std::vector<const LaterOpen*>;

// The file of that name that some distribution brings to a place where it is not looked for.
std::string installed_file(const Case& examined, const LaterOpen& open) {
  if (!examined.distributions) return "";
  for (const Distribution& distribution : examined.distributions->all())
    for (const std::string& file : distribution.native_files)
      for (const std::string& name : open.attempts)
        if (last_part(file) == name) return file;
  return "";
}

Finding finding_of(const Case& examined, const Failures& failures) {
  const ProcessView& process = examined.process;
  const LaterOpen& first = *failures.front();
  const bool goes_on = first.row->failure == OnFailure::kWarning;
  Finding finding;
  finding.severity = goes_on ? Severity::kWarning : Severity::kError;
  finding.headline =
      fmt::format("{} cannot open {}{}{}", short_name(process, first.opener), first.attempts.back(),
                  failures.size() > 1 ? fmt::format(" and {} more", failures.size() - 1) : "",
                  when_imported(examined));
  finding.libraries.push_back(library_of(process, first.opener));
  for (const LaterOpen* failure : failures) {
    finding.evidence.push_back({"search", "ld.so says: " + failure->error,
                                path_of(process, first.opener), failure->attempts.back(), -1, -1,
                                ""});
    for (const sim::SearchStep& step : failure->search)
      finding.evidence.push_back(fact(
          "place", fmt::format("{} ({}): {}", step.path, step.because, step.outcome), step.path));
  }
  if (goes_on)
    finding.evidence.push_back(fact("declared", "it goes on without the GPU, and says so at most"));
  finding.evidence.push_back(
      fact("declared", fmt::format("that it opens this: {}", first.row->source)));
  for (const LaterOpen* failure : failures)
    if (const std::string installed = installed_file(examined, *failure); !installed.empty()) {
      finding.evidence.push_back(fact("file", fmt::format("it is in {}", installed), installed));
      finding.help.push_back(
          {fmt::format("have LD_LIBRARY_PATH name {} before the process starts: `cohabit run` does",
                       directory_of(installed)),
           "", Safety::kSafe});
      return finding;
    }
  finding.help.push_back(
      {"install the package that brings the library, or import one that loads it first", "",
       Safety::kManual});
  return finding;
}

// A part beside the opener that its distribution does not bring, in a build that does without: a
// build for the CPU, of which CU103 tells.
bool is_of_another_build(const Case& examined, const LaterOpen& open) {
  if (!open.row->by_path || open.row->failure != OnFailure::kWarning || !examined.distributions)
    return false;
  const std::string opener = path_of(examined.process, open.opener);
  return !examined.distributions->owners(opener).empty() &&
         examined.distributions->owners(open.attempts.back()).empty();
}

std::vector<Finding> check(const Case& examined) {
  std::map<std::pair<sim::ObjectId, OnFailure>, Failures> failures;
  if (examined.later)
    for (const LaterOpen& open : *examined.later)
      if (!open.error.empty() && open.row && open.row->failure != OnFailure::kIgnored &&
          !is_of_another_build(examined, open))
        failures[{open.opener, open.row->failure}].push_back(&open);
  std::vector<Finding> findings;
  findings.reserve(failures.size());
  for (const auto& [key, of_opener] : failures) findings.push_back(finding_of(examined, of_opener));
  return findings;
}

}  // namespace

const Rule kLd209 = {
    "LD209",
    "later-open-fails",
    Severity::kError,
    "A library that is opened after the imports, when a GPU is used, cannot be opened.",
    "  data/later_opens.tsv says which libraries open others when a device is set up, at the "
    "first\n"
    "  convolution, linear algebra or compilation; the names come from the strings of the "
    "library.\n"
    "  The opens are simulated after the imports where a GPU's driver is there or assumed\n"
    "  (--assume-gpu, --driver, --sm).",
    "  The imports work and a first operation fails, or a framework goes on without the GPU and "
    "hardly\n"
    "  says so.",
    "  `Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9.1, libcudnn_ops.so.9, "
    "libcudnn_ops.so}`",
    "  Install the package that brings the library where the opener looks: the places are in the\n"
    "  evidence. Importing a framework that loads it first helps too.",
    "  Certainty declared: whether a program comes to this point is not known. Libraries that no "
    "row\n"
    "  of the table speaks of are not judged.",
    check,
};

}  // namespace cohabit::rules
