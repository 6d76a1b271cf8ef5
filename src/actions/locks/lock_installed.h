// A lock of what is installed.
#pragma once

#include <string>
#include <vector>

#include "actions/locks/find_wheels.h"
#include "actions/locks/lock.h"
#include "base/result.h"

namespace cohabit::locks {

// `prefix`: distributions below it; what else the interpreter sees (of its base, of the user) is
// no part of it, and said.
Lock lock_installed(const Question& question, const Distributions& distributions,
                    const std::string& prefix);

// Files that are not what RECORDs say. Those are read that cannot be believed: of another size,
// written after their RECORD, claimed twice. `all`: every file.
std::vector<ChangedFile> find_changed(const Distributions& distributions, bool all);

// "numpy==1.26.4", or "numpy @ ADDRESS".
std::string requirement_of(const LockedWheel& one);

// The two other forms of a lock.
std::string format_requirements(const Lock& lock);
std::string format_environment_yml(const Lock& lock, const std::string& name);

}  // namespace cohabit::locks
