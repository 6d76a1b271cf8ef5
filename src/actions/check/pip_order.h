// In which order pip installs: dependencies first, and within what could be installed at once by
// name, backwards. Who is installed last owns a file that several bring.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "actions/check/plan.h"
#include "facts/python/requirement.h"

namespace cohabit::check {

// Normal names of the arrivals, first to last; empty: their requirements form a circle, in which
// pip decides by what it met first. `requested`: requirements of the request.
std::vector<std::string> pip_order(const Plan& plan, const Distributions& expected,
                                   const MarkerEnvironment& environment,
                                   const std::vector<PackageRequirement>& requested);

}  // namespace cohabit::check
