// entry_points.txt: which scripts installers make, and which modules others load as plugins (PyPA's
// "Entry points specification").
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cohabit {

struct EntryPoint {
  std::string group;  // "console_scripts"
  std::string name;
  std::string call;  // "module:function", "module"
  bool is_script() const { return group == "console_scripts" || group == "gui_scripts"; }
};

// Those of scripts first, else as written.
std::vector<EntryPoint> parse_entry_points(std::string_view text);

struct Script {
  std::string name;  // of the file in bin
  std::string call;  // "module:function"
};

// Of the groups console_scripts and gui_scripts; without those whose names are no file's.
std::vector<Script> parse_scripts(std::string_view text);

}  // namespace cohabit
