// Of whom a file is that several distributions claim: who installed it last, as far as its size
// tells. Rules of the environment compare contents (FI001); a process has time for sizes only.
#pragma once

#include "findings/ownership.h"

namespace cohabit {

// Leaves the owner whose RECORD has the size of the file, where just one has.
void narrow_owners(const Tree& tree, const Distributions& distributions,
                   const sim::Simulation& simulation, Ownership& ownership);

}  // namespace cohabit
