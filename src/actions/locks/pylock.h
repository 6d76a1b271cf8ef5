// pylock.toml (PEP 751): what it says of wheels, read and written. What else may stand there
// (repositories, directories, source archives) is counted, not followed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actions/locks/lock.h"
#include "base/result.h"

namespace cohabit::locks {

struct PylockPackage {
  std::string name, version, marker;
  std::vector<WheelAddress> wheels;
  bool is_direct = false;   // the one wheel is an archive that was installed from its address
  bool has_wheels = false;  // false: something else, that would have to be built
};

struct Pylock {
  std::string python;  // of what it was made, "3.11.7"; empty: another program made it
  std::vector<std::string> bundled;  // "pip==23.2.1": what that Python itself brings
  std::vector<std::string> default_groups;
  std::vector<PylockPackage> packages;
};

// `directory`: where relative paths in it start.
Result<Pylock> parse_pylock(const std::string& text, const std::string& directory);

std::string format_pylock(const Lock& lock);

}  // namespace cohabit::locks
