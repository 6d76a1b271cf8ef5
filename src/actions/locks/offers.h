// The wheels that an installer's indexes have of given versions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "actions/locks/find_wheels.h"

namespace cohabit::locks {

struct Offers {
  std::map<std::string, std::vector<WheelAddress>> wheels;  // by normal name
  std::map<std::string, std::string> refusals;              // by normal name: why there are none
};

// `pins`: "name==version". pip names one wheel, the one that it would take; uv names all.
Offers ask_offers(const Question& question, const std::vector<std::string>& pins);

}  // namespace cohabit::locks
