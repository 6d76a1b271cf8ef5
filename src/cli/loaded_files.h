// What findings about the environment's files mean for a process: whether it loads them.
#pragma once

#include <string_view>
#include <unordered_set>

#include "cli/examine.h"
#include "report/report.h"

namespace cohabit {

// Modules of a plan and mapped objects, by path; as long as both are there.
using LoadedFiles = std::unordered_set<std::string_view>;
LoadedFiles loaded_files(const std::optional<python::Plan>& plan,
                         const std::vector<std::string>& mapped);

// Whether one of the files that the finding calls broken is among them.
bool loads_broken(const LoadedFiles& loaded, const Finding& finding);
// What was found broken in the environment belongs to the orders that load it, or end because it is
// lost.
void note_broken(const LoadedFiles& loaded, const std::optional<python::Plan>& plan,
                 report::Report& report, report::Order& order);
// Which findings about files are of importance to this process (Finding::reach).
void note_reach(const World& world, const LoadedFiles& loaded, report::Report& report);

}  // namespace cohabit
