// Real runs of orders of imports, each in a child process, a few at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/verified_row.h"
#include "repair/repair.h"

namespace cohabit {

struct VerifyRequest {
  VerifyLimits limits;          // of one run
  unsigned jobs = 1;            // at a time, as far as there is memory; 0: as many as processors
  bool cached = false;          // what was ok and has not changed is not run again
  bool leaves_bytecode = true;  // what Python compiles is written into the environment, as ever
};

// `meanwhile`, if given, is called in this thread for each that is run, while it runs.
Result<std::vector<VerifiedRow>> verify_orders(
    const World& world, const Repair& repair, const std::vector<std::vector<std::string>>& orders,
    const VerifyRequest& request, const std::function<void(VerifiedRow&)>& meanwhile = {});

}  // namespace cohabit
