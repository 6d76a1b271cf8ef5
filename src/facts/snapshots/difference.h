// What lies between two snapshots.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "facts/snapshots/snapshot.h"

namespace cohabit {

// Bytes, kind, permissions, owner, time of change, where a link points: all that a restore
// restores.
bool same_file(const SnapshotFile& a, const SnapshotFile& b);
// The same for those who look into files only: kind, bytes, permissions.
bool same_content(const SnapshotFile& a, const SnapshotFile& b);

enum class ChangeKind : uint8_t { kAdded, kRemoved, kChanged };

struct FileChange {
  ChangeKind kind = ChangeKind::kChanged;
  const SnapshotFile* before = nullptr;  // nullptr: added
  const SnapshotFile* after = nullptr;   // nullptr: removed
  const std::string& path() const { return before ? before->path : after->path; }
};

template <class Same>
std::vector<FileChange> compare_files(const Snapshot& before, const Snapshot& after, Same same) {
  std::vector<FileChange> changes;
  auto a = before.files.begin();
  auto b = after.files.begin();
  while (a != before.files.end() || b != after.files.end()) {
    if (b == after.files.end() || (a != before.files.end() && a->path < b->path)) {
      changes.push_back({ChangeKind::kRemoved, &*a++, nullptr});
    } else if (a == before.files.end() || b->path < a->path) {
      changes.push_back({ChangeKind::kAdded, nullptr, &*b++});
    } else {
      if (!same(*a, *b)) changes.push_back({ChangeKind::kChanged, &*a, &*b});
      a++, b++;
    }
  }
  return changes;
}

struct PackageChange {
  std::string name, before, after;  // versions; empty: not there
};

struct VariableDifference {
  std::string name;
  ChangeKind kind = ChangeKind::kChanged;
};

struct Difference {
  std::vector<PackageChange> packages;
  std::vector<FileChange> files;
  std::vector<SnapshotFinding> new_findings, gone_findings;
  std::string findings_of;  // what both looked at: "orders", "files"; empty: one did not look
  std::vector<VariableDifference> variables;
  bool empty() const {
    return packages.empty() && files.empty() && new_findings.empty() && gone_findings.empty() &&
           variables.empty();
  }
};

// Refers to both.
Difference compare(const Snapshot& before, const Snapshot& after);
std::vector<PackageChange> compare_packages(const std::vector<SnapshotPackage>& before,
                                            const std::vector<SnapshotPackage>& after);

}  // namespace cohabit
