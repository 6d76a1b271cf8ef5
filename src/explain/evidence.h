// What an environment and this machine say to the answers: confirmed, contradicted, or nothing.
#pragma once

#include <vector>

#include "explain/answer.h"
#include "facts/host/machine.h"
#include "findings/environment.h"

namespace cohabit::explain {

// Carries out the checks of each answer's mechanism, sets its status and evidence, and ranks the
// answers again: what is contradicted goes behind the others.
void look_at_environment(Explanation& explanation, const EnvironmentCase& examined,
                         const Machine& machine);

// What a simulation of the run that the text is of has found: an error of the rule that a
// mechanism names confirms it, with the finding's own help.
void look_at_run(Explanation& explanation, const std::vector<Finding>& findings);

}  // namespace cohabit::explain
