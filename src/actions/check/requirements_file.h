// Requirements files: https://pip.pypa.io/en/stable/reference/requirements-file-format/
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace cohabit::check {

// Lines without comments, those that go on in the next put together; what other files say stands
// where they are named.
struct RequirementLines {
  std::vector<std::string> requirements;  // with options of their own, as hashes; "-e DIR" too
  std::vector<std::string> options;       // of all: "--index-url X"; files named as from here
};

// Adds what is read before a failure too.
Result<void> read_requirements(const std::string& path, RequirementLines& lines);

// "torch==2.1 --hash=..." -> "torch==2.1"
std::string without_options(const std::string& line);

}  // namespace cohabit::check
