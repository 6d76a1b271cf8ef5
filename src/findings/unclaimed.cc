#include "findings/unclaimed.h"

#include <algorithm>

#include "base/addresses.h"
#include "base/paths.h"

namespace cohabit {
namespace {

constexpr std::string_view kBundle = ".libs";

bool is_installed_in_place(const Distribution& one, const std::string& package) {
  const auto project = path_of_address(one.editable);
  return project && package.starts_with(join_normal("/", *project) + '/');
}

}  // namespace

// The nearest directory with an __init__.py (libraries lie in plain directories below), then up as
// long as the parents have one.
const std::string& UnclaimedPackages::package_of(const std::string& directory) {
  if (const auto known = package_of_.find(directory); known != package_of_.end())
    return known->second;
  std::string package;
  if (!directory.empty() && directory != "/" && !is_boundary(directory)) {
    const std::string parent = directory_of(directory);
    const bool starts_here = is_package(directory) && !is_package(parent);
    package = starts_here ? directory : package_of(parent);
  }
  return package_of_.emplace(directory, std::move(package)).first->second;
}

bool UnclaimedPackages::is_package(const std::string& directory) const {
  return tree_.stat(join_normal(directory, "__init__.py")).has_value();
}

// What lies in an environment belongs to no package around the environment.
bool UnclaimedPackages::is_boundary(const std::string& directory) const {
  const auto& installed = distributions_.all();
  return std::any_of(installed.begin(), installed.end(),
                     [&](const Distribution& one) { return one.site == directory; }) ||
         tree_.stat(join_normal(directory, "pyvenv.cfg")) ||
         tree_.stat(join_normal(directory, "conda-meta"));
}

// auditwheel names it after the distribution, which need not be the package's name: then the
// library that asked for it tells.
std::string UnclaimedPackages::bundle_package(const std::string& directory,
                                              const std::vector<uint32_t>& askers) const {
  std::string name = directory.substr(0, directory.size() - kBundle.size());
  if (is_package(name)) return name;
  for (const uint32_t asker : askers) {
    const std::string& package = ownership_.distributions[asker].package;
    if (directory_of(package) == directory_of(directory)) return package;
  }
  return "";
}

uint32_t UnclaimedPackages::owner_of_package(const std::string& package) {
  if (const auto known = owners_.find(package); known != owners_.end()) return known->second;
  const auto& installed = distributions_.all();
  const bool in_site = std::any_of(installed.begin(), installed.end(), [&](const auto& one) {
    return one.site == directory_of(package);
  });
  const auto in_place = std::find_if(installed.begin(), installed.end(), [&](const auto& one) {
    return !in_site && is_installed_in_place(one, package);
  });
  auto owner = static_cast<uint32_t>(in_place - installed.begin());
  if (in_place == installed.end()) {
    owner = static_cast<uint32_t>(ownership_.distributions.size());
    OwnerDistribution fresh{last_part(package), "", {}, {}, true, package};
    const auto& imports = ownership_.asked.imports;
    if (std::any_of(imports.begin(), imports.end(), [&](const std::string& name) {
          return name.substr(0, name.find('.')) == fresh.name;
        }))
      ownership_.requested.push_back(owner);
    ownership_.distributions.push_back(std::move(fresh));
  }
  return owners_[package] = owner;
}

std::vector<uint32_t> UnclaimedPackages::owner_of(const std::string& path,
                                                  const std::vector<uint32_t>& askers) {
  const std::string directory = directory_of(path);
  std::string package = package_of(directory);
  if (package.empty() && directory.ends_with(kBundle)) package = bundle_package(directory, askers);
  if (package.empty()) return {};
  return {owner_of_package(package)};
}

}  // namespace cohabit
