// A finding about a stand-in for an environment, told of the environment.
#pragma once

#include <string>

#include "findings/finding.h"

namespace cohabit::check {

void rename_paths(Finding& finding, const std::string& from, const std::string& to);

}  // namespace cohabit::check
