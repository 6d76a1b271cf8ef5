// Names come from strangers' files: a line break in one could forge a line of the report, an escape
// sequence could write to the terminal. Reports for people show such bytes as \n, \x1b and the
// like.
#pragma once

#include <string>
#include <string_view>

#include "report/report.h"

namespace cohabit::report {

// Valid UTF-8 without control characters, line separators and direction marks.
std::string printable(std::string_view text);
Report printable(Report report);

}  // namespace cohabit::report
