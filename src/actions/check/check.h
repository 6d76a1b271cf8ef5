// Before an install: what it would change, overwrite and break.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actions/check/plan.h"
#include "findings/expected.h"

namespace cohabit::check {

struct Outcome {
  Installer installer;
  std::vector<ExpectedChange> changes;
  std::vector<Overwrite> overwrites;
  size_t claimed_twice = 0, different = 0;  // paths, each counted once
  std::vector<Finding> findings;            // that are not there today
  uint64_t bytes_fetched = 0, bytes_of_wheels = 0;
  std::vector<std::string> unknowns;
  std::string unread;  // why none of the wheels that come could be looked for; empty: some could
};

Result<Outcome> check_install(const Installer& installer, const Interpreter& python,
                              const Distributions& present, const Request& request);

// Whether the next word of an installer's command line is this option's value.
bool takes_value(const std::string& option);
// What the request asks for by name: of requirement strings and of files that -r names.
std::vector<PackageRequirement> requested_of(const Request& request,
                                             const MarkerEnvironment& environment);

}  // namespace cohabit::check
