// `cohabit check --deep`.
#pragma once

#include "actions/check/check.h"

namespace cohabit {

// The environment is really made, beside the present one, and all of doctor is asked of both: what
// it finds only there takes the place of the outcome's findings.
Result<void> look_deeper(const check::Installer& installer, const Interpreter& python,
                         const check::Request& request, check::Outcome& outcome);

}  // namespace cohabit
