// entry_points.txt: which scripts installers make (PyPA's "Entry points specification").
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cohabit {

struct Script {
  std::string name;  // of the file in bin
  std::string call;  // "module:function"
};

// Of the groups console_scripts and gui_scripts; without those whose names are no file's.
std::vector<Script> parse_scripts(std::string_view entry_points);

}  // namespace cohabit
