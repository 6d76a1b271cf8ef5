// Files that say what is wanted and that an installer does not read itself: locks, projects,
// environments of conda. They become words that it does read.
#pragma once

#include <string>
#include <vector>

#include "actions/check/plan.h"
#include "base/result.h"
#include "facts/python/requirement.h"

namespace cohabit::check {

struct Input {
  std::vector<std::string> words;     // requirements; "-r FILE" where the installer reads it
  bool is_lock = false;               // of what is to be there in the end: nothing is resolved
  std::vector<std::string> unknowns;  // what of it is not looked at
};

// By its name: pyproject.toml, uv.lock, poetry.lock, pylock.toml (or pylock.NAME.toml),
// environment.yml (or .yaml); any other is the installer's.
Result<Input> read_input(const std::string& path, Tool tool, const MarkerEnvironment& environment);

}  // namespace cohabit::check
