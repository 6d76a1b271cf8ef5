#include "facts/python/listed_modules.h"

#include <algorithm>

#include "base/rows.h"
#include "facts/python/requirement.h"

namespace cohabit {

std::vector<std::string> listed_modules(const Tree& tree, const Distribution& distribution) {
  constexpr uint64_t kLargestList = uint64_t{1} << 20;
  std::vector<std::string> modules;
  const std::string text =
      tree.read_text(distribution.metadata + "/top_level.txt", kLargestList).value_or("");
  for (std::string_view line : split(text, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) modules.emplace_back(line);
  }
  return modules;
}

std::string module_named_as(const Distribution& distribution) {
  std::string module = normal_name(distribution.name);
  std::replace(module.begin(), module.end(), '-', '_');
  return module;
}

}  // namespace cohabit
