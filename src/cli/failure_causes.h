// Why an import fails, where another finding of the same report, or a file beside, tells: "see line
// 1 of __init__.py" helps nobody whose file is gone.
#pragma once

#include <vector>

#include "cli/examine.h"
#include "findings/finding.h"
#include "imports/plan.h"

namespace cohabit {

// `known`: what was found in the environment. Changes what `failure` (PY302) tells to do.
void explain_failure(const World& world, const python::Plan& plan,
                     const std::vector<Finding>& known, Finding& failure);

}  // namespace cohabit
