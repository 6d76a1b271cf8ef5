#include <fmt/format.h>

#include "findings/failures.h"
#include "findings/rules/rules.h"
#include "findings/words.h"

namespace cohabit::rules {
namespace {

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
    if (!mapped[id]) continue;
    if (image.elf.defects.empty() && !image.map.damaged()) continue;
    Finding finding;
    finding.severity = Severity::kWarning;
    finding.certainty = Certainty::kObserved;
    finding.headline = fmt::format("{} is damaged: what is said about it may be wrong",
                                   image.path.substr(image.path.rfind('/') + 1));
    if (const uint64_t wanted = cut_short(image)) {
      finding.severity = Severity::kError;
      finding.headline =
          fmt::format("{} is cut short: {} of at least {} bytes are there",
                      image.path.substr(image.path.rfind('/') + 1), image.file_size, wanted);
      finding.evidence.push_back({"defect",
                                  "the process is killed (SIGBUS) where it touches what is missing",
                                  "", "", -1, -1, ""});
    }
    finding.libraries.push_back(library_at(examined, image.real_path));
    for (const elf::Defect& defect : image.elf.defects)
      finding.evidence.push_back({"defect", fmt::format("at {:#x}: {}", defect.offset, defect.what),
                                  "", image.real_path, static_cast<int64_t>(defect.offset), -1,
                                  ""});
    if (image.map.damaged())
      finding.evidence.push_back(
          {"defect", "a page of the file could not be read", "", image.real_path, -1, -1, ""});
    finding.help.push_back(reinstall(examined, finding.libraries.back()));
    findings.push_back(std::move(finding));
  }
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
    "  A file that is cut short kills the process (SIGBUS): that is an error.",
    "  `at 0x3f8: DT_SYMTAB points outside of the file`",
    "  Reinstall the package. If the file is from a tool that rewrites binaries, report it there.",
    "  Only what the loader reads is checked.",
    check,
};

}  // namespace cohabit::rules
