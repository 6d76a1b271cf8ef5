// What is mounted on this machine (/proc/self/mountinfo, proc(5)).
#pragma once

#include <string>
#include <vector>

namespace cohabit {

// Mount points below a directory without symlinks, itself left out. Empty where /proc does not say.
std::vector<std::string> mount_points_below(const std::string& directory);

}  // namespace cohabit
