// Where in source a finding is to be seen, as services show it beside the code.
#pragma once

#include <optional>
#include <string>

#include "report/report.h"

namespace cohabit::report {

// The place that it knows, else its first party, of no line; in a notebook no line either: that is
// one of a cell. No file: it is about none.
Place shown_place(const Finding& finding);

// The same for services that refuse a finding without a file: what is about none is about the
// program or the environment.
Place place_for_services(const Finding& finding, const Report& report);

// The path as it is in the project: from the current directory. Nothing: it is elsewhere, or in the
// environment, which may lie in the project and is not part of it.
std::optional<std::string> path_in_project(const std::string& path, const Report& report);

}  // namespace cohabit::report
