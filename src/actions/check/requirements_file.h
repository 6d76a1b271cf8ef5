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
// The same of a text that stands where `path` does.
Result<void> read_requirements_text(const std::string& text, const std::string& path,
                                    RequirementLines& lines);

// "-rFILE", "--requirement=FILE" -> "-r", "FILE"; the same of "-e".
std::vector<std::string> with_files_apart(const std::vector<std::string>& words);

// Of all requirements files that an installer's arguments name. What cannot be read is the
// installer's to complain of.
RequirementLines lines_of(const std::vector<std::string>& arguments);

// "torch==2.1 --hash=..." -> "torch==2.1"
std::string without_options(const std::string& line);

}  // namespace cohabit::check
