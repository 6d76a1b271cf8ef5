#include <fmt/format.h>

#include "findings/rules/rules.h"
#include "findings/variables.h"

namespace cohabit::rules {
namespace {

std::vector<Finding> check(const EnvironmentCase& examined) {
  return unread_variables(judge_variables(examined, examined.options.variables));
}

}  // namespace

const Rule kEv001 = {
    "EV001",
    "unread-variable",
    Severity::kWarning,
    "A variable for a framework is set that nobody here reads.",
    "  Variables that are set, have a framework's prefix, are not known (data/variables.tsv) and\n"
    "  stand in no Python file and no native file of the environment. A warning if there is a "
    "known\n"
    "  name that differs by one or two letters; else a note.",
    "  A setting without effect, and without a word: the program behaves as if it were not there.",
    "  TF_FORCE_GPU_ALOW_GROWTH=true",
    "  Correct the name, or remove the variable.",
    "  Names that are put together at run time are not found (but those of Paddle's and JAX's "
    "flags). "
    "Values\n"
    "  are not shown. The files are read only if a variable is set that the table does not know.",
    nullptr,
    check,
};

}  // namespace cohabit::rules
