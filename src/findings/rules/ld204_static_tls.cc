#include "findings/failures.h"
#include "findings/rules/rules.h"

namespace cohabit::rules {
namespace {

std::vector<Finding> check(const Case& examined) {
  return failed_opens(
      examined, "static TLS block", "no room is left for its thread-local variables",
      "start with GLIBC_TUNABLES=glibc.rtld.optional_static_tls=16384, or import it first");
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
