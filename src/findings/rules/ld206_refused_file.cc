#include "findings/failures.h"
#include "findings/rules/rules.h"

namespace cohabit::rules {
namespace {

std::vector<Finding> check(const Case& examined) {
  std::vector<Finding> findings;
  for (const char* phrase :
       {"invalid ELF header", "file too short", "ELF file", "cannot dynamically load",
        "wrong ELF class", "object file has no", "cannot read file data"})
    for (Finding& finding : failed_opens(examined, phrase, "{file} is refused by the loader",
                                         "reinstall the package that the file is from"))
      if (findings.empty()) findings.push_back(std::move(finding));
  return findings;
}

}  // namespace

const Rule kLd206 = {
    "LD206",
    "refused-file",
    Severity::kError,
    "A file was found that the loader does not take.",
    "  The open of the recorded run failed because of what the file is: empty, text, a program, "
    "another\n"
    "  machine's.",
    "  Often a Git LFS pointer, a linker script, or a download that broke off.",
    "  `libx.so: invalid ELF header`",
    "  Reinstall the package that the file is from.",
    "  As LD201.",
    check,
};

}  // namespace cohabit::rules
