#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "findings/failures.h"
#include "findings/rules/rules.h"

namespace cohabit::rules {
namespace {

// Bytes.
constexpr uint64_t kUsualRoom = 16384, kMostRoom = 1 << 24, kPage = 4096;

// Enough for all that was opened after the start, if every variable had to be in the block.
uint64_t wanted_room(const ProcessView& process) {
  uint64_t wanted = 0;
  for (sim::ObjectId id = 0; id < process.object_count(); id++) {
    if (process.object(id).call == kNone || process.object(id).image == kNone) continue;
    for (const elf::Phdr& segment : process.image(id).elf.segments)
      if (segment.p_type == elf::PT_TLS && segment.p_memsz < kMostRoom)
        wanted += segment.p_memsz + segment.p_align % kPage;
  }
  return std::bit_ceil(std::clamp<uint64_t>(wanted, kUsualRoom, kMostRoom));
}

std::vector<Finding> check(const Case& examined) {
  std::vector<Finding> findings =
      failed_opens(examined, "static TLS block", "no room is left for its thread-local variables",
                   "make more room, or import it first");
  for (Finding& finding : findings)
    if (!finding.help.empty() && finding.help[0].command.empty())
      finding.help[0].command =
          fmt::format("GLIBC_TUNABLES=glibc.rtld.optional_static_tls={} python app.py",
                      wanted_room(examined.process));
  return findings;
}

}  // namespace

const Rule kLd204 = {
    "LD204",
    "static-tls",
    Severity::kError,
    "The static TLS block has no room for a library that is loaded late.",
    "  A library whose thread-local variables must be in the static block is opened after "
    "start-up, and\n"
    "  glibc's surplus is used up by earlier ones.",
    "  It depends on the order of imports and on the number of libraries, so it comes and goes.",
    "  `cannot allocate memory in static TLS block`",
    "  Import it earlier, preload it, or raise GLIBC_TUNABLES=glibc.rtld.optional_static_tls.",
    "  As LD201.",
    check,
};

}  // namespace cohabit::rules
