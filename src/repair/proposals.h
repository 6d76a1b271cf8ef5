// Single changes that may clear the errors of a process, the safest first.
#pragma once

#include <vector>

#include "repair/judge.h"

namespace cohabit {

std::vector<Repair> propose_repairs(const JudgedProcess& process);

// How much may break that the simulation cannot see: 0 is the safest.
int risk_of(const Repair& repair);

}  // namespace cohabit
