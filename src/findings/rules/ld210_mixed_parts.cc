#include <fmt/format.h>

#include <map>

#include "findings/rules/rules.h"
#include "findings/words.h"

namespace cohabit::rules {
namespace {

using sim::LaterOpen;
using sim::ObjectId;

struct Mix {
  const LaterOpen* open;
  Severity severity;
};

// Versions as far as both are known.
bool may_be_same(const Case& examined, ObjectId a, ObjectId b) {
  const auto& simulation = examined.process.simulation();
  const std::string x = python::three_numbers(examined.libraries->version_of(simulation, a));
  const std::string y = python::three_numbers(examined.libraries->version_of(simulation, b));
  return x == y || x.starts_with(y + ".") || y.starts_with(x + ".");
}

bool are_same(const Case& examined, ObjectId a, ObjectId b) {
  const auto& simulation = examined.process.simulation();
  const std::string x = examined.libraries->version_of(simulation, a);
  return x.find('.') != x.npos && may_be_same(examined, a, b) &&
         examined.libraries->version_of(simulation, b).find('.') != x.npos;
}

bool is_file(const Case& examined, ObjectId id, const std::string& path) {
  const auto& images = examined.process.simulation().images();
  const auto status = images.tree().stat(path);
  return status && status->id == examined.process.image(id).file;
}

// An opener that has the part itself and is given another is mixed with it. One that has none takes
// what there is, which matters where the versions have to agree.
std::optional<Severity> judge(const Case& examined, const LaterOpen& open) {
  if (open.object == kNone || are_same(examined, open.opener, open.object)) return std::nullopt;
  const bool exact = open.row && open.row->same_version;
  if (open.own.empty()) {
    if (!exact) return std::nullopt;
    const auto& ownership = examined.process.ownership();
    if (ownership.same(open.opener, open.object)) return std::nullopt;
    return may_be_same(examined, open.opener, open.object) ? Severity::kWarning : Severity::kError;
  }
  if (is_file(examined, open.object, open.own)) return std::nullopt;
  return exact ? Severity::kError : Severity::kWarning;
}

Finding finding_of(const Case& examined, const std::vector<Mix>& mixes) {
  const ProcessView& process = examined.process;
  const LaterOpen& first = *mixes.front().open;
  Finding finding;
  for (const Mix& mix : mixes) finding.severity = std::max(finding.severity, mix.severity);
  finding.headline =
      fmt::format("{} opens {} part{} of itself by name and gets {} of another copy{}",
                  short_name(process, first.opener), mixes.size(), mixes.size() == 1 ? "" : "s",
                  mixes.size() == 1 ? "that" : "those", when_imported(examined));
  finding.libraries.push_back(library_of(process, first.opener));
  for (const Mix& mix : mixes) {
    const LaterOpen& open = *mix.open;
    finding.libraries.push_back(library_of(process, open.object));
    finding.evidence.push_back(
        {"opened",
         fmt::format("{} is given {}", open.attempts.back(), path_of(process, open.object)),
         path_of(process, open.opener), path_of(process, open.object), -1, -1,
         open.own.empty() ? "" : "its own is " + open.own});
  }
  if (first.row && first.row->same_version)
    finding.evidence.push_back(fact("declared", "the versions have to agree to the last number"));
  finding.evidence.push_back(
      fact("declared", first.row ? fmt::format("that it opens this: {}", first.row->source)
                                 : std::string("the names are among its strings, and the files "
                                               "where it looks first")));
  finding.help.push_back(
      {"use one copy: the same version in all distributions, nothing before it "
       "in LD_LIBRARY_PATH; or keep them in processes of their own",
       "", Safety::kManual});
  return finding;
}

std::vector<Finding> check(const Case& examined) {
  std::map<ObjectId, std::vector<Mix>> mixes;
  if (examined.later)
    for (const LaterOpen& open : *examined.later)
      if (const auto severity = judge(examined, open))
        mixes[open.opener].push_back({&open, *severity});
  std::vector<Finding> findings;
  findings.reserve(mixes.size());
  for (const auto& [opener, of_opener] : mixes) findings.push_back(finding_of(examined, of_opener));
  return findings;
}

}  // namespace

const Rule kLd210 = {
    "LD210",
    "mixed-parts",
    Severity::kError,
    "A library opens parts of itself by name and is given those of another copy.",
    "  After the imports, where a GPU's driver is there or assumed, libraries open their parts by "
    "bare\n"
    "  name: those in data/later_opens.tsv, and names among the strings of a library whose files "
    "lie\n"
    "  where it looks first. Whoever loaded a library of that name before has decided which file "
    "it is.",
    "  cuDNN checks that all of its parts have the dispatcher's version and fails at the first "
    "operation\n"
    "  (CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH); others mix their state without a word.",
    "  A framework brings cuDNN 9.1 without its parts, and takes those of a system's cuDNN 9.19.",
    "  Use one copy: the same version in all distributions, no other in LD_LIBRARY_PATH, or "
    "processes of\n"
    "  their own.",
    "  A warning where the versions are not known or need not agree. Versions come from file "
    "names,\n"
    "  sonames and distributions. Certainty declared: when the parts are opened is known from "
    "the\n"
    "  table, or not at all (\"a first use\").",
    check,
};

}  // namespace cohabit::rules
