// Which installed distributions the imports of the frameworks come to.
#pragma once

#include <map>
#include <set>
#include <string>

#include "cli/examine.h"

namespace cohabit {

// By framework (the module that one imports): normal names of the distributions whose modules its
// import would load, and of all that those require, by whatever chain, installed or not.
std::map<std::string, std::set<std::string>> used_distributions(World& world);

}  // namespace cohabit
