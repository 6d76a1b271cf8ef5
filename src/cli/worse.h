// What an install has made worse, and which package did it.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/kept_environment.h"
#include "facts/snapshots/difference.h"
#include "findings/expected.h"

namespace cohabit {

struct Worse {
  std::vector<std::string> orders;  // "torch, tensorflow": sound before, unsound now
  // That were not there before: errors, and warnings that a distribution of before is broken.
  std::vector<const Finding*> findings;
  bool empty() const { return orders.empty() && findings.empty(); }
};

// Why a predicted install is refused. Refers to what it was made of.
struct Refusal {
  // Errors, and warnings that a distribution that is there would be broken by another.
  std::vector<const Finding*> findings;
  std::vector<const ExpectedChange*> replaced;  // frameworks that nobody named
  bool empty() const { return findings.empty() && replaced.empty(); }
};
Refusal refusal_of(const std::vector<Finding>& findings, const std::vector<ExpectedChange>& changes,
                   const Distributions& there);

// What makes a finding the same one after an install.
std::pair<std::string, Severity> key_of(const Finding& finding, const std::string& fingerprint);

// Refers to `after`.
Worse find_worse(const Examination& before, const Examination& after,
                 const std::vector<SnapshotPackage>& packages_before);

// Of the distributions that were not there before, those that `findings` says do not fit to what is
// there: doctor warns of it, and only a run tells whether they work all the same.
std::vector<PackageChange> suspects(const std::vector<PackageChange>& changes,
                                    const std::vector<Finding>& findings);

// A distribution that is the one that was there, and files of which are not.
struct Altered {
  PackageChange package;           // from a version to the same one
  std::vector<std::string> files;  // below the environment
};
// Files that are other ones than before, and than the installer of their distribution says, which
// `changes` does not name: written in place, or by a wheel that does not list them.
std::vector<Altered> find_altered(const Snapshot& before, const Snapshot& now,
                                  const KeptEnvironment& after,
                                  const std::vector<PackageChange>& changes);

// A changed package and who asked for it: "beta 1.0 -> 2.0, required by gamma".
std::string culprit(const PackageChange& change, const std::vector<PackageChange>& changes,
                    const Distributions& after);
// Sentences: the changed packages that new errors are about, each with who asked for it.
std::vector<std::string> find_culprits(const Worse& worse,
                                       const std::vector<PackageChange>& changes,
                                       const Distributions& after);

}  // namespace cohabit
