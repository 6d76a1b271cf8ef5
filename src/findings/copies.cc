#include "findings/copies.h"

#include <algorithm>
#include <map>

#include "base/paths.h"
#include "facts/python/requirement.h"

namespace cohabit {
namespace {

bool is_of_base(const std::string& site, const Interpreter& python) {
  return is_below(site, python.base_prefix) && !is_below(site, python.prefix);
}

// By its place in sys.path, not by its path: `check` puts what would be there into a directory
// elsewhere. PYTHONPATH stands before the standard library, and whoever sets it may have forgotten.
bool is_of_venv(const std::string& site, const Interpreter& python) {
  if (site == python.user_site || is_of_base(site, python)) return false;
  const auto& path = python.module_path;
  auto library = std::find(path.begin(), path.end(), python.standard_library);
  if (library == path.end()) library = path.begin();
  return std::find(path.begin(), library, site) == library;
}

}  // namespace

std::vector<const Distribution*> without_repeats(const Distributions& distributions,
                                                 const Interpreter& python) {
  std::map<std::string, const Distribution*> first;  // of each name; never conda's, if others are
  for (const bool of_conda : {false, true})
    for (const Distribution& one : distributions.all())
      if (one.is_conda_package == of_conda) first.emplace(normal_name(one.name), &one);
  std::vector<const Distribution*> kept;
  for (const Distribution& one : distributions.all()) {
    const Distribution& found = *first[normal_name(one.name)];
    const bool is_record = one.is_conda_package && !found.is_conda_package;
    const bool is_meant = python.system_site_packages && is_of_base(one.site, python) &&
                          is_of_venv(found.site, python);
    if (!is_record && !is_meant) kept.push_back(&one);
  }
  return kept;
}

}  // namespace cohabit
