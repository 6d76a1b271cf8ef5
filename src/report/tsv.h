// What a simulation loaded and bound, as tables that can be held against ld.so's own log.
#pragma once

#include <string>

#include "sim/simulation.h"

namespace cohabit::report {

// Columns: path (links resolved), name asked for, needed-by or dlopen-by, by whom. In load order;
// without the program and ld.so.
std::string loads_table(const sim::Simulation& simulation);
// Columns: from, to (links resolved), symbol, version wanted ('-' if none), normal or protected.
// In binding order, each line once.
// Every place that was considered for a name, in order: name, path, because of what, outcome. Needs
// sim::Options::keep_search_steps.
std::string search_table(const sim::Simulation& simulation);
std::string bindings_table(const sim::Simulation& simulation);
// One line per call: ok, failed or none (RTLD_NOLOAD found nothing); ld.so's error text.
std::string results_table(const sim::Simulation& simulation);

}  // namespace cohabit::report
