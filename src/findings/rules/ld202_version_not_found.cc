#include "findings/failures.h"
#include "findings/rules/rules.h"

namespace cohabit::rules {
namespace {

std::vector<Finding> check(const Case& examined) {
  return failed_opens(examined, "' not found (required by", "{file} lacks version {version}",
                      "let the newer copy of the library be mapped first");
}

}  // namespace

const Rule kLd202 = {
    "LD202",
    "version-not-found",
    Severity::kError,
    "A library was found that lacks a symbol version its user asks for.",
    "  ld.so's check of symbol versions (DT_VERNEED against DT_VERDEF) fails for a library of the "
    "failed\n"
    "  open.",
    "  Usually an old libstdc++.so.6 or a library of another package with the same soname was "
    "mapped\n"
    "  first.",
    "  `libstdc++.so.6: version 'GLIBCXX_3.4.29' not found (required by libx.so)`",
    "  See which file was taken (evidence). Where a variable led to it, do without; where a newer "
    "one "
    "is\n"
    "  there, let it be mapped first, by order of imports or LD_PRELOAD. A glibc cannot be "
    "replaced: "
    "take\n"
    "  a build for an older one.",
    "  As LD201.",
    check,
};

}  // namespace cohabit::rules
