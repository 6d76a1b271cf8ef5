// The machine as a traced process saw it.
#pragma once

#include "base/tree.h"
#include "facts/host/machine.h"
#include "facts/trace/trace.h"

namespace cohabit {

// What the trace recorded goes before what is found here.
Machine recorded_machine(const Tree& tree, const StartFacts& start);

}  // namespace cohabit
