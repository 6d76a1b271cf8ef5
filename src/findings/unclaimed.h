// Owners of libraries that no installed distribution claims.
//
// A package copied without its metadata, a directory on PYTHONPATH, a build in place: nobody lists
// their files, and still the libraries of one package were linked to be together. The file tree
// tells what belongs together: a package is the topmost of the directories above a library that
// have an __init__.py each, and X.libs beside it is where wheels put what they bundle.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "base/tree.h"
#include "findings/ownership.h"

namespace cohabit {

class UnclaimedPackages {
 public:
  // Adds the packages that it finds to ownership.distributions, after the installed ones.
  UnclaimedPackages(const Tree& tree, const Distributions& distributions, Ownership& ownership)
      : tree_(tree), distributions_(distributions), ownership_(ownership) {}

  // The owner of a file (absolute, without symlinks): an index into ownership.distributions, of a
  // distribution that is installed in place or of the package; none if it is in no package.
  // `askers` own the library that asked for the file.
  std::vector<uint32_t> owner_of(const std::string& path, const std::vector<uint32_t>& askers);

 private:
  const std::string& package_of(const std::string& directory);
  bool is_package(const std::string& directory) const;
  bool is_boundary(const std::string& directory) const;
  std::string bundle_package(const std::string& directory,
                             const std::vector<uint32_t>& askers) const;
  uint32_t owner_of_package(const std::string& package);

  const Tree& tree_;
  const Distributions& distributions_;
  Ownership& ownership_;
  std::unordered_map<std::string, std::string> package_of_;  // by directory; "" for none
  std::unordered_map<std::string, uint32_t> owners_;         // by the package's directory
};

}  // namespace cohabit
