#include "report/snapshots.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "report/printable.h"

namespace cohabit::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownFiles = 20;

std::string_view change_name(ChangeKind kind) {
  static constexpr std::string_view kNames[] = {"added", "removed", "changed"};
  return kNames[static_cast<size_t>(kind)];
}

// What Python makes by itself, and makes again.
bool is_compiled(const FileChange& change) {
  const std::string& path = change.path();
  return path.ends_with(".pyc") || path.ends_with("/__pycache__");
}

std::string how_changed(const FileChange& change) {
  if (change.kind != ChangeKind::kChanged) return "";
  const SnapshotFile& before = *change.before;
  const SnapshotFile& after = *change.after;
  static constexpr std::string_view kKinds[] = {"a directory", "a file", "a link", "special"};
  if (before.kind != after.kind)
    return fmt::format(" ({}, then {})", kKinds[static_cast<size_t>(before.kind)],
                       kKinds[static_cast<size_t>(after.kind)]);
  if (before.kind == EntryKind::kLink)
    return fmt::format(" ({}, then {})", printable(before.target), printable(after.target));
  std::string text;
  if (before.kind == EntryKind::kFile && before.hash != after.hash)
    text = fmt::format(" ({} bytes, then {})", before.size, after.size);
  if (before.mode != after.mode)
    text += fmt::format(" (permissions {:o}, then {:o})", before.mode, after.mode);
  return text;
}

void append_files(const std::vector<FileChange>& changes, std::string& text) {
  size_t counts[3] = {}, compiled = 0, shown = 0;
  std::string lines;
  for (const FileChange& change : changes) {
    if (is_compiled(change)) {
      compiled++;
      continue;
    }
    counts[static_cast<size_t>(change.kind)]++;
    const bool new_directory =
        change.kind == ChangeKind::kAdded && change.after->kind == EntryKind::kDirectory;
    if (new_directory || shown == kShownFiles) continue;
    shown++;
    lines += fmt::format("  {} {}{}\n",
                         change.kind == ChangeKind::kAdded     ? '+'
                         : change.kind == ChangeKind::kRemoved ? '-'
                                                               : '~',
                         printable(change.path()), how_changed(change));
  }
  text += fmt::format("files: {} added, {} removed, {} changed", counts[0], counts[1], counts[2]);
  if (compiled > 0) text += fmt::format("; {} compiled ones (__pycache__)", compiled);
  text += "\n" + lines;
  const size_t all = counts[0] + counts[1] + counts[2];
  if (all > shown) text += fmt::format("  and {} more\n", all - shown);
}

void append_findings(const Difference& difference, std::string& text) {
  if (difference.findings_of.empty()) {
    text += "findings: not compared (the two snapshots did not look at the same)\n";
    return;
  }
  text += fmt::format("findings: {} new, {} gone (of {})\n", difference.new_findings.size(),
                      difference.gone_findings.size(),
                      difference.findings_of == "orders" ? "files and all orders" : "files");
  const auto list = [&](const std::vector<SnapshotFinding>& findings, char sign) {
    for (const SnapshotFinding& finding : findings)
      text += fmt::format("  {} {}[{}]: {}\n", sign, finding.severity, finding.code,
                          printable(finding.headline));
  };
  list(difference.new_findings, '+');
  list(difference.gone_findings, '-');
}

Json findings_json(const std::vector<SnapshotFinding>& findings) {
  Json list = Json::array();
  for (const SnapshotFinding& finding : findings)
    list.push_back({{"fingerprint", finding.fingerprint},
                    {"code", finding.code},
                    {"severity", finding.severity},
                    {"headline", finding.headline}});
  return list;
}

Json side_json(const SnapshotFile* file) {
  if (!file) return nullptr;
  static constexpr const char* kKinds[] = {"directory", "file", "link", "other"};
  Json json = {{"kind", kKinds[static_cast<size_t>(file->kind)]},
               {"mode", fmt::format("{:o}", file->mode)}};
  if (file->kind == EntryKind::kLink) json["target"] = file->target;
  if (file->kind != EntryKind::kFile) return json;
  json["size"] = file->size;
  json["sha256"] = hexadecimal(file->hash);
  json["read"] = file->was_read;
  return json;
}

std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string size_text(uint64_t bytes) {
  constexpr double kThousand = 1000;
  static constexpr std::string_view kUnits[] = {"kB", "MB", "GB", "TB"};
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  double number = static_cast<double>(bytes) / kThousand;
  size_t unit = 0;
  for (; number >= kThousand && unit + 1 < std::size(kUnits); unit++) number /= kThousand;
  return fmt::format("{:.1f} {}", number, kUnits[unit]);
}

std::string package_change(const PackageChange& change) {
  if (change.before.empty())
    return printable(fmt::format("{} {} added", change.name, change.after));
  if (change.after.empty())
    return printable(fmt::format("{} {} removed", change.name, change.before));
  return printable(fmt::format("{} {} -> {}", change.name, change.before, change.after));
}

std::string difference_full(const Difference& difference, const std::string& before,
                            const std::string& after) {
  if (difference.empty()) return fmt::format("{} and {} do not differ\n", before, after);
  std::string text = fmt::format("from {} to {}\n", before, after);
  text += fmt::format("packages: {} changed\n", difference.packages.size());
  for (const PackageChange& change : difference.packages)
    text += fmt::format("  {}\n", package_change(change));
  append_files(difference.files, text);
  append_findings(difference, text);
  if (!difference.variables.empty())
    text += fmt::format("variables: {} differ\n", difference.variables.size());
  for (const VariableDifference& variable : difference.variables)
    text += fmt::format("  {} {}\n", printable(variable.name), change_name(variable.kind));
  return text;
}

std::string difference_json(const Difference& difference, const std::string& before,
                            const std::string& after) {
  Json json = {{"schema_version", 1}, {"before", before}, {"after", after}};
  json["packages"] = Json::array();
  const auto version = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  for (const PackageChange& change : difference.packages)
    json["packages"].push_back(
        {{"name", change.name}, {"from", version(change.before)}, {"to", version(change.after)}});
  json["files"] = Json::array();
  for (const FileChange& change : difference.files)
    json["files"].push_back({{"path", change.path()},
                             {"change", change_name(change.kind)},
                             {"before", side_json(change.before)},
                             {"after", side_json(change.after)}});
  json["findings_of"] = version(difference.findings_of);
  json["new_findings"] = findings_json(difference.new_findings);
  json["gone_findings"] = findings_json(difference.gone_findings);
  json["variables"] = Json::array();
  for (const VariableDifference& variable : difference.variables)
    json["variables"].push_back({{"name", variable.name}, {"change", change_name(variable.kind)}});
  return dump(json);
}

std::string snapshots_full(const std::vector<Snapshot>& snapshots) {
  if (snapshots.empty()) return "there are no snapshots: `cohabit snapshot` makes one\n";
  size_t width = 0;
  for (const Snapshot& snapshot : snapshots) width = std::max(width, snapshot.name.size());
  std::string text;
  for (const Snapshot& snapshot : snapshots)
    text +=
        fmt::format("{:<{}}  {}  {} packages{}\n", snapshot.name, width, snapshot.made,
                    snapshot.notes.packages.size(),
                    snapshot.notes.reason.empty() ? "" : ", " + printable(snapshot.notes.reason));
  return text;
}

std::string snapshots_json(const std::vector<Snapshot>& snapshots) {
  Json json = {{"schema_version", 1}, {"snapshots", Json::array()}};
  for (const Snapshot& snapshot : snapshots)
    json["snapshots"].push_back({{"name", snapshot.name},
                                 {"made", snapshot.made},
                                 {"reason", snapshot.notes.reason},
                                 {"automatic", snapshot.notes.is_automatic},
                                 {"packages", snapshot.notes.packages.size()}});
  return dump(json);
}

}  // namespace cohabit::report
