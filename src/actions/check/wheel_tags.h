// Which of several wheels of one version an installer takes: the most specific that this machine
// and interpreter can use (PEP 425, 600).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace cohabit::check {

struct TagTarget {
  int python = 312;     // major * 100 + minor
  std::string machine;  // "x86_64"
  int glibc = 36;       // 2.36
};

// The index of the best; nothing if none fits. Names are "torch-2.6.0-cp312-...whl".
std::optional<size_t> best_wheel(const std::vector<std::string>& names, const TagTarget& target);

// The first two parts of a wheel's file name.
struct WheelName {
  std::string_view name, version;
};
std::optional<WheelName> split_wheel_name(std::string_view file);

// "py3-none-any" for each combination that a wheel's name stands for; empty: it is no such name.
std::set<std::string> tags_of(std::string_view file);

}  // namespace cohabit::check
