#include "facts/snapshots/difference.h"

#include <algorithm>
#include <map>
#include <set>

namespace cohabit {
namespace {

std::map<std::string, std::string> by_name(const std::vector<SnapshotPackage>& packages) {
  std::map<std::string, std::string> result;
  for (const SnapshotPackage& package : packages) {
    std::string& versions = result[package.name];
    if (!versions.empty()) versions += ", ";  // installed twice
    versions += package.version;
  }
  return result;
}

std::vector<SnapshotFinding> missing_from(const std::vector<SnapshotFinding>& these,
                                          const std::vector<SnapshotFinding>& those) {
  std::set<std::string> known;
  for (const SnapshotFinding& finding : those) known.insert(finding.fingerprint);
  std::vector<SnapshotFinding> result;
  for (const SnapshotFinding& finding : these)
    if (!known.contains(finding.fingerprint)) result.push_back(finding);
  return result;
}

std::vector<VariableDifference> compare_variables(const std::vector<SnapshotVariable>& before,
                                                  const std::vector<SnapshotVariable>& after) {
  std::map<std::string, std::pair<std::string, std::string>> hashes;
  for (const SnapshotVariable& variable : before) hashes[variable.name].first = variable.hash;
  for (const SnapshotVariable& variable : after) hashes[variable.name].second = variable.hash;
  std::vector<VariableDifference> result;
  for (const auto& [name, pair] : hashes)
    if (pair.first != pair.second)
      result.push_back({name, pair.first.empty()    ? ChangeKind::kAdded
                              : pair.second.empty() ? ChangeKind::kRemoved
                                                    : ChangeKind::kChanged});
  return result;
}

}  // namespace

bool same_content(const SnapshotFile& a, const SnapshotFile& b) {
  if (a.kind != b.kind || a.mode != b.mode) return false;
  if (a.kind == EntryKind::kLink) return a.target == b.target;
  return a.kind != EntryKind::kFile || (a.size == b.size && a.hash == b.hash);
}

bool same_file(const SnapshotFile& a, const SnapshotFile& b) {
  if (!same_content(a, b)) return false;
  if (a.kind == EntryKind::kLink || a.kind == EntryKind::kOther) return true;
  const bool same_owner = a.uid == b.uid && a.gid == b.gid;
  return same_owner && (a.kind == EntryKind::kDirectory || a.modified == b.modified);
}

std::vector<PackageChange> compare_packages(const std::vector<SnapshotPackage>& before,
                                            const std::vector<SnapshotPackage>& after) {
  std::map<std::string, PackageChange> changes;
  for (auto& [name, version] : by_name(before)) changes[name].before = version;
  for (auto& [name, version] : by_name(after)) changes[name].after = version;
  std::vector<PackageChange> result;
  for (auto& [name, change] : changes) {
    if (change.before == change.after) continue;
    change.name = name;
    result.push_back(std::move(change));
  }
  return result;
}

Difference compare(const Snapshot& before, const Snapshot& after) {
  Difference result;
  result.packages = compare_packages(before.notes.packages, after.notes.packages);
  result.files = compare_files(before, after, same_content);
  result.variables = compare_variables(before.notes.variables, after.notes.variables);
  if (before.notes.findings_of == after.notes.findings_of) {
    result.findings_of = before.notes.findings_of;
    result.new_findings = missing_from(after.notes.findings, before.notes.findings);
    result.gone_findings = missing_from(before.notes.findings, after.notes.findings);
  }
  return result;
}

}  // namespace cohabit
