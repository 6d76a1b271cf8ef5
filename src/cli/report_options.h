// How a report is asked for: its form, and what counts as a failure.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "findings/finding.h"

namespace cohabit {

// Of --format and --fail-on; an empty level is that of the configuration.
Result<void> check_report_options(const std::string& format, const std::string& fail_on);
// Whether a finding is as bad as this level: error, warning, note or never.
bool reaches(const std::vector<Finding>& findings, const std::string& level);

}  // namespace cohabit
