// What makes a finding the same one tomorrow, in another order, in an environment elsewhere: its
// rule and its parties by name. For baselines and for services that track alerts.
#pragma once

#include <string>

#include "findings/finding.h"

namespace cohabit {

// 32 hexadecimal digits. `environment`: its path, which does not count.
std::string fingerprint(const Finding& finding, const std::string& environment);

// Within one environment and one run: the same rule about the same files (or, without files, in the
// same words) is one cause, however many orders have it.
std::string cause_of(const Finding& finding);

// A path without what only says where the environment is: from the package directory on, from the
// environment on, or for the system's files the name alone.
std::string place_in(const std::string& path, const std::string& environment);

// The same of a finding about distributions before and after other versions of them are installed:
// without versions, without how many files, and whether it is expected or has happened.
std::string key_across_versions(const Finding& finding);

}  // namespace cohabit
