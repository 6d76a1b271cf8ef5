// What the rules about metadata say of an environment that is not there yet: its METADATA and
// RECORDs are known, its files are not.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "facts/python/requirement.h"
#include "findings/environment.h"

namespace cohabit {

enum class ExpectedKind : uint8_t { kAdded, kUpgraded, kDowngraded, kReinstalled, kRemoved };
std::string_view kind_name(ExpectedKind kind);

struct ExpectedChange {
  std::string name, from, to;  // versions; empty: not there
  ExpectedKind kind = ExpectedKind::kAdded;
  // The requirements that lead to it, that of the request first; empty: nobody's.
  std::vector<std::string> because;
  // Another version of a framework that comes with a requirement, and that nobody named.
  bool replaces_framework = false;
};
ExpectedChange change_of(const std::string& name, const std::string& from, const std::string& to);

// Paths that two distributions claim, of which at least one would be installed.
struct Overwrite {
  std::string first, second;  // "nvidia-cudnn-cu12 9.28.0.42"
  size_t count = 0, different = 0;
  std::vector<std::string> examples;  // of the different ones first
  std::string winner;                 // the name of one of them; empty: undecided, or some of each
};

// Whose a path would be that several claim, by absolute path: the name of the distribution that is
// written last; empty: undecided.
using Writers = std::map<std::string, std::string>;

// Of the paths that several claim, and by at least one of `arriving` (normal names): in `order`
// (normal names, first to last) whoever comes later writes over the others; an empty order decides
// only between what would come and what is there.
Writers find_writers(const EnvironmentCase& examined, const std::set<std::string>& arriving,
                     const std::vector<std::string>& order);
std::vector<Overwrite> find_overwrites(const EnvironmentCase& examined,
                                       const std::set<std::string>& arriving,
                                       const Writers& writers);
// Paths that several claim, and of them those with different content; each counted once.
std::pair<size_t, size_t> count_claimed_twice(const EnvironmentCase& examined,
                                              const std::set<std::string>& arriving);

// The shortest way from a request to each distribution, as requirements; by normal name.
std::map<std::string, std::vector<std::string>> find_chains(
    const EnvironmentCase& examined, const std::vector<PackageRequirement>& requested);

// FI001 and PY001 to PY004, worst first; ids are made by whoever reports.
std::vector<Finding> check_expected(const EnvironmentCase& before, const EnvironmentCase& after,
                                    const Writers& writers);

namespace rules {
// FI001 of such an environment.
std::vector<Finding> expect_overwritten(const EnvironmentCase& examined, const Writers& writers);
// FI002 of what stays, when the files of `going` (normal names) are removed.
// `is_written_again(path, name)`: somebody brings it after that one has gone.
std::vector<Finding> expect_missing(
    const EnvironmentCase& before, const std::set<std::string>& going,
    const std::function<bool(const std::string&, const std::string&)>& is_written_again);
// PY001 of requirements that are not met and that are met today, or nobody's.
std::vector<Finding> expect_unmet(const EnvironmentCase& before, const EnvironmentCase& after);
// Normal names of those that require another version of something than is there.
std::set<std::string> wanting_other_versions(const EnvironmentCase& examined);
// PY005 of what is there, but for `left_out` (normal names), were this the version of NumPy.
std::vector<Finding> numpy_abi(const EnvironmentCase& examined, const std::string& numpy_version,
                               const std::set<std::string>& left_out);
// PY006 of what is there, but for `left_out`, with the protobuf of `expected`.
std::vector<Finding> protobuf_gencode(const EnvironmentCase& before,
                                      const EnvironmentCase& expected,
                                      const std::set<std::string>& left_out);
// PY302 of what stays: modules that the new version of one of `changed` (normal names) has no more,
// nor anybody else. Of a version whose files are not known nothing is told; what is removed is
// meant to go.
std::vector<Finding> expect_withdrawn(const EnvironmentCase& before, const EnvironmentCase& after,
                                      const std::set<std::string>& changed);
}  // namespace rules

}  // namespace cohabit
