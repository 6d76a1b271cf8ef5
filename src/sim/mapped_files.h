// The files of a process, by the names that they were opened by and by their real paths.
#pragma once

#include <string_view>
#include <vector>

#include "sim/simulation.h"

namespace cohabit::sim {

// As long as the simulation is there.
std::vector<std::string_view> mapped_files(const Simulation& simulation);

}  // namespace cohabit::sim
