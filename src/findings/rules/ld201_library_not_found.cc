#include "findings/failures.h"
#include "findings/rules/rules.h"

namespace cohabit::rules {
namespace {

std::vector<Finding> check(const Case& examined) {
  std::vector<Finding> findings =
      failed_opens(examined, "cannot open shared object file: No such file", "{file} is not found",
                   "install the package that brings it, in the version that the name asks for");
  if (!findings.empty()) return findings;
  return failed_opens(examined, "cannot open shared object file", "{file} cannot be read",
                      "the evidence has the loader's reason: let this user read the file and enter "
                      "its directories (chmod a+r, chmod a+x)");
}

}  // namespace

const Rule kLd201 = {
    "LD201",
    "library-not-found",
    Severity::kError,
    "A library is in none of the places where ld.so looks.",
    "  An open of the recorded run failed because a library, or a dependency of it, was not found, "
    "and\n"
    "  the process ended with an error.",
    "  Python reports only the first missing name; the places that were looked at, and why each "
    "was\n"
    "  passed over, are in the evidence.",
    "  `libcudart.so.11.0: cannot open shared object file: No such file or directory`",
    "  Install the package that brings the library, or put its directory into the RUNPATH of the "
    "library\n"
    "  that needs it. LD_LIBRARY_PATH helps too, and shadows libraries of other packages.",
    "  A program that goes on without the library is not reported.",
    check,
};

}  // namespace cohabit::rules
