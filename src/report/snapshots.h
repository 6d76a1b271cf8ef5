// What is said about snapshots and what lies between them.
#pragma once

#include <string>
#include <vector>

#include "facts/snapshots/difference.h"
#include "facts/snapshots/snapshot.h"

namespace cohabit::report {

std::string difference_full(const Difference& difference, const std::string& before,
                            const std::string& after);
// data/schema/diff.schema.json describes it.
std::string difference_json(const Difference& difference, const std::string& before,
                            const std::string& after);
// Heads of snapshots, the oldest first.
std::string snapshots_full(const std::vector<Snapshot>& snapshots);
// data/schema/snapshots.schema.json describes it.
std::string snapshots_json(const std::vector<Snapshot>& snapshots);
// "torch 2.5.0 -> 2.6.0", "numpy 2.1 removed".
std::string package_change(const PackageChange& change);
// "12.3 MB"
std::string size_text(uint64_t bytes);

}  // namespace cohabit::report
