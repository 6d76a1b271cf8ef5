#include <algorithm>
#include <iterator>

#include "findings/failures.h"
#include "findings/rules/rules.h"

namespace cohabit::rules {
namespace {

std::vector<Finding> check(const Case& examined) {
  constexpr std::string_view kPhrase = "undefined symbol";
  constexpr std::string_view kHelp =
      "install versions of both packages that were built for each other";
  std::vector<Finding> findings = failed_opens(
      examined, kPhrase, "the symbol {symbol}, which it needs, is nowhere defined", kHelp);
  std::vector<Finding> survived = survived_opens(
      examined, kPhrase,
      "the symbol {symbol}, which it needs, is nowhere defined; who opens it goes on without it",
      kHelp);
  std::move(survived.begin(), survived.end(), std::back_inserter(findings));
  return findings;
}

}  // namespace

const Rule kLd203 = {
    "LD203",
    "undefined-symbol",
    Severity::kError,
    "A symbol that a library needs is defined by nobody in its scope.",
    "  A strong reference of the failed open has no definition in the scope of the object. Where "
    "the\n"
    "  program goes on without the library it is a warning, and an error if the library's "
    "distribution\n"
    "  requires another version of an installed one than is there (torchvision of another torch: "
    "its\n"
    "  operators are missing as soon as they are used).",
    "  The library was built against another version of a dependency.",
    "  `undefined symbol: _ZN3tsl17internal_statusor6Helper26HandleInvalidStatusCtorArgE...`",
    "  Install versions that were built for each other.",
    "  As LD201.",
    check,
};

}  // namespace cohabit::rules
