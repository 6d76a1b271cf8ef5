#include "findings/rules/rules.h"

namespace cohabit::rules {

const Rule kIo902 = {
    "IO902",
    "unused-ignore",
    Severity::kNote,
    "An ignore of the configuration matches no finding.",
    "  An [[ignore]] of cohabit.toml or pyproject.toml that nothing in this report fits.",
    "  An ignore that is not needed any more hides the next finding of its kind.",
    "  libz.so.1 was split by an old paddle, and ignored; the new one does not split it.",
    "  Remove the ignore.",
    "  An ignore that is meant for another program or environment of the project is reported too\n"
    "  where it does not apply; `severity.IO902 = \"off\"` stops that.",
    nullptr,  // made by findings/policy.cc
    nullptr,
};

}  // namespace cohabit::rules
