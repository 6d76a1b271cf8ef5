// One install as several, each of one requirement.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace cohabit {

struct InstallStep {
  std::string what;  // the requirement, as written
  std::vector<std::string> command;
};

// A step for each requirement on the command line and in the files that -r names, in their order;
// other words and the options in those files belong to every step. A requirement of a file goes to
// the installer in a file, made in `directory`, since it may carry hashes.
Result<std::vector<InstallStep>> steps_of(const std::vector<std::string>& given,
                                          const std::string& directory);

}  // namespace cohabit
