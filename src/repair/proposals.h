// Single changes that may clear the errors of a process, the safest first.
#pragma once

#include <string>
#include <vector>

#include "repair/judge.h"

namespace cohabit {

// The opens of a file by name that made this object global, as indices of calls.
std::vector<size_t> opens_that_promote(const JudgedProcess& process, sim::ObjectId object);
// The name in the open that mapped it; empty: it was there at start-up, or no name was given.
std::string open_that_mapped(const JudgedProcess& process, sim::ObjectId object);

std::vector<Repair> propose_repairs(const JudgedProcess& process);

// How much may break that the simulation cannot see: 0 is the safest.
int risk_of(const Repair& repair);

}  // namespace cohabit
