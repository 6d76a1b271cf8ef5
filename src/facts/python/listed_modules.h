// What a distribution says of its modules without a list of files that would tell.
#pragma once

#include <string>
#include <vector>

#include "base/tree.h"
#include "facts/python/distributions.h"

namespace cohabit {

// The names in its top_level.txt, which setuptools writes, as they stand there; none: there is
// none.
std::vector<std::string> listed_modules(const Tree& tree, const Distribution& distribution);
// What it would be called: "my_app" of "My.App".
std::string module_named_as(const Distribution& distribution);

}  // namespace cohabit
