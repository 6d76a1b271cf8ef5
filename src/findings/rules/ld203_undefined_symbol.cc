#include "findings/failures.h"
#include "findings/rules/rules.h"

namespace cohabit::rules {
namespace {

std::vector<Finding> check(const Case& examined) {
  return failed_opens(examined, "undefined symbol",
                      "the symbol {symbol}, which it needs, is nowhere defined",
                      "install versions of both packages that were built for each other");
}

}  // namespace

const Rule kLd203 = {
    "LD203",
    "undefined-symbol",
    Severity::kError,
    "A symbol that a library needs is defined by nobody in its scope.",
    "  A strong reference of the failed open has no definition in the scope of the object.",
    "  The library was built against another version of a dependency.",
    "  `undefined symbol: _ZN3tsl17internal_statusor6Helper26HandleInvalidStatusCtorArgE...`",
    "  Install versions that were built for each other.",
    "  As LD201.",
    check,
};

}  // namespace cohabit::rules
