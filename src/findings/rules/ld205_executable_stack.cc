#include "findings/failures.h"
#include "findings/rules/rules.h"

namespace cohabit::rules {
namespace {

std::vector<Finding> check(const Case& examined) {
  return failed_opens(examined, "executable stack", "it asks for an executable stack",
                      "use a newer build of the library");
}

}  // namespace

const Rule kLd205 = {
    "LD205",
    "executable-stack",
    Severity::kError,
    "A library asks for an executable stack, which this loader refuses.",
    "  PT_GNU_STACK of the opened library is executable or missing; glibc from 2.41 on refuses it "
    "in\n"
    "  dlopen.",
    "  The library worked before the system was upgraded.",
    "  `cannot enable executable stack as shared object requires: Invalid argument`",
    "  Use a newer build of the library; `patchelf --clear-execstack FILE` changes the file.",
    "  As LD201.",
    check,
};

}  // namespace cohabit::rules
