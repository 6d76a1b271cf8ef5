// What only the simulated processes of an environment tell about variables: LD_LIBRARY_PATH that
// shadows a wheel's libraries, or without which a framework's later opens fail, and OpenMP runtimes
// that meet.
#pragma once

#include <vector>

#include "cli/examine.h"
#include "repair/launch_needs.h"

namespace cohabit {

// Simulates only where the files give a reason to. The world's machine has been read; from here on
// it is examined as one with a GPU. The changes are judged: they clear what they are for and bring
// no error.
Result<std::vector<NeededVariable>> needs_of_processes(World& world, const VariableMap& variables);

}  // namespace cohabit
