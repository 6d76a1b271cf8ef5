// Which of an environment's records of distributions are installations of their own. A package of
// conda that Python sees has two, conda's and its dist-info; and a venv made with
// --system-site-packages is there to put other versions before those of its base.
#pragma once

#include <vector>

#include "facts/python/distributions.h"
#include "facts/python/interpreter.h"

namespace cohabit {

// In the order of all(), without conda's record of what has metadata of Python's, and without the
// base's copies of what the venv itself has.
std::vector<const Distribution*> without_repeats(const Distributions& distributions,
                                                 const Interpreter& python);

}  // namespace cohabit
