// The verdicts of a report.
#pragma once

#include <string>
#include <vector>

#include "report/painter.h"
#include "report/report.h"

namespace cohabit::report {

// "python app.py", "import a; import b".
std::string statement(const std::string& program, const std::vector<std::string>& imports);

// Each framework and every order of every pair: a table; anything else: a line for each process.
std::string draw_orders(const Report& report, const Painter& painter);

}  // namespace cohabit::report
