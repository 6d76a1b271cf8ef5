#include <fmt/format.h>

#include <algorithm>

#include "findings/failures.h"
#include "findings/rules/rules.h"
#include "findings/words.h"

namespace cohabit::rules {
namespace {

void add_defect(Finding& finding, const elf::Defect& defect, const std::string& path) {
  const std::string where = defect.offset ? fmt::format("at {:#x}: ", defect.offset) : "";
  finding.evidence.push_back({"defect", where + defect.what, "", path,
                              defect.offset ? static_cast<int64_t>(defect.offset) : -1, -1, ""});
}

Finding finding_of(const Case& examined, const Image& image) {
  const std::string name = image.path.substr(image.path.rfind('/') + 1);
  const std::vector<elf::Defect> defects = image.defects();
  const bool fatal = std::any_of(defects.begin(), defects.end(),
                                 [](const elf::Defect& defect) { return defect.fatal; });
  Finding finding;
  finding.severity = fatal ? Severity::kError : Severity::kWarning;
  finding.certainty = Certainty::kObserved;
  finding.headline =
      fatal ? fmt::format("{} is damaged: the loader goes by its tables unseen, and as a rule dies",
                          name)
            : fmt::format("{} is damaged: what is said about it may be wrong", name);
  if (const uint64_t wanted = cut_short(image)) {
    finding.severity = Severity::kError;
    finding.headline = fmt::format("{} is cut short: {} of at least {} bytes are there", name,
                                   image.file_size, wanted);
    finding.evidence.push_back({"defect",
                                "the process is killed (SIGBUS) where it touches what is missing",
                                "", "", -1, -1, ""});
  }
  finding.libraries.push_back(library_at(examined, image.real_path));
  for (const elf::Defect& defect : defects) add_defect(finding, defect, image.real_path);
  if (image.map.damaged())
    finding.evidence.push_back(
        {"defect", "a page of the file could not be read", "", image.real_path, -1, -1, ""});
  finding.help.push_back(reinstall(examined, finding.libraries.back()));
  return finding;
}

Finding finding_of(const Case& examined, const sim::Simulation::Assertion& assertion) {
  const sim::Simulation& simulation = examined.process.simulation();
  const Image& image = simulation.images()[simulation.objects()[assertion.object].image];
  Finding finding;
  finding.severity = Severity::kError;
  finding.certainty = Certainty::kSimulated;
  finding.headline = fmt::format("the loader itself ends the process at {}",
                                 image.path.substr(image.path.rfind('/') + 1));
  finding.libraries.push_back(library_at(examined, image.real_path));
  finding.evidence.push_back({"defect", assertion.what, "", image.real_path, -1, -1, ""});
  finding.help.push_back(reinstall(examined, finding.libraries.back()));
  return finding;
}

std::vector<Finding> check(const Case& examined) {
  std::vector<Finding> findings;
  const sim::Simulation& simulation = examined.process.simulation();
  const Images& images = simulation.images();
  // Unmapped ones too: damage is why an open fails and is undone.
  std::vector<bool> mapped(images.size());
  for (const sim::Object& object : simulation.objects())
    if (object.image < mapped.size()) mapped[object.image] = true;
  for (ImageId id = 0; id < images.size(); id++) {
    const Image& image = images[id];
    if (mapped[id] && (image.map.damaged() || !image.defects().empty()))
      findings.push_back(finding_of(examined, image));
  }
  for (const auto& assertion : simulation.assertions())
    findings.push_back(finding_of(examined, assertion));
  return findings;
}

}  // namespace

const Rule kIo901 = {
    "IO901",
    "damaged-file",
    Severity::kWarning,
    "A library that was mapped has tables that are not as they must be.",
    "  Offsets outside of the file, tables that overlap, counts that lie; or a file that shrank "
    "while it\n"
    "  was read. The evidence names the place.",
    "  The loader may read other things there than Cohabit does, so the rest of the report is less "
    "sure.\n"
    "  What the loader takes unseen (a table that lies elsewhere, a name behind the strings, an "
    "index "
    "of no\n"
    "  version) makes it read or write where nothing is, or fail an assertion: that is an error.\n"
    "  A file that is cut short kills the process (SIGBUS): that is an error.",
    "  `at 0x3f8: DT_SYMTAB points outside of the file`",
    "  Reinstall the package. If the file is from a tool that rewrites binaries, report it there.",
    "  Only what the loader reads is checked.",
    check,
};

}  // namespace cohabit::rules
