// The reports of `cohabit env`. What the user's own variables hold is never part of them.
#pragma once

#include <string>
#include <vector>

#include "findings/finding.h"
#include "findings/judged_variables.h"
#include "repair/launch_needs.h"

namespace cohabit::report {

struct NeedsReport {
  std::string environment, python;
  LaunchNeeds needs;
  bool lacks_driver = false;  // what only the use of a GPU needs was not looked for
};
std::string full(const NeedsReport& report, bool colour);
// Lines for a shell: `eval "$(cohabit env --export)"`.
std::string shell(const NeedsReport& report);
// data/schema/env.schema.json describes it, and that of the check.
std::string json(const NeedsReport& report);

struct VariableCheck {
  std::string environment, python;
  std::vector<JudgedVariable> variables;
  std::vector<Finding> findings;
};
std::string full(const VariableCheck& check, bool colour);
std::string json(const VariableCheck& check);

}  // namespace cohabit::report
