// The steps that `cohabit fix` and `cohabit run` share: plan the orders of an environment, search a
// repair, and make a report of it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/examine.h"
#include "repair/search.h"
#include "report/repairs.h"

namespace cohabit {

struct RepairRequest {
  std::string environment;                     // "" for the active one
  std::string root;                            // read files below this directory
  std::string replay;                          // a trace in place of a plan
  std::vector<std::string> imports;            // this order
  std::vector<std::string> with;               // each alone and every pair in both orders
  bool effects = true;                         // say what the repairs move and cost
  bool cache = true;                           // plans are kept from one run to the next
  std::optional<python::PlanRequest> program;  // in place of imports
  std::string title;                           // how the program is started
};

Result<report::RepairReport> find_repairs(const RepairRequest& request);

}  // namespace cohabit
