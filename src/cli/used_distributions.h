// Which installed distributions the imports of the frameworks come to, and who comes to a
// distribution.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/examine.h"

namespace cohabit {

// By framework (the module that one imports): normal names of the distributions whose modules its
// import would load, and of all that those require, by whatever chain, installed or not.
std::map<std::string, std::set<std::string>> used_distributions(World& world);
// Adds all that those of these names (normal ones) require, by whatever chain, installed or not;
// `in_extras`: in any of their extras too.
void add_required(const World& world, std::set<std::string>& names, bool in_extras);
// Those that are installed of these and of all that require them, in extras too, the nearest first:
// indices into world.distributions.all().
std::vector<uint32_t> users_of(const World& world, const std::set<std::string>& names);

}  // namespace cohabit
