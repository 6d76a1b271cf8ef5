// What is on disk and is not what the RECORD says: edited by hand, patched, damaged, or overwritten
// by something that keeps no RECORD (conda over pip, a copied library).
#include <fmt/format.h>

#include <map>
#include <set>

#include "findings/rules/rules.h"

namespace cohabit::rules {
namespace {

struct Change {
  size_t files = 0, code = 0;
  std::string_view only;                      // if it is one
  std::vector<std::string> examples, others;  // of code, and of the rest
};

constexpr size_t kExamples = 3;

bool is_code(std::string_view path) {
  return path.ends_with(".py") || path.ends_with(".so") || path.find(".so.") != path.npos;
}

// FI001 tells of files that several distributions brought.
std::set<uint32_t> rows_claimed_twice(const EnvironmentCase& examined) {
  std::set<uint32_t> rows;
  for (const std::vector<uint32_t>& group : examined.files.claimed_twice())
    rows.insert(group.begin(), group.end());
  return rows;
}

Finding describe(const EnvironmentCase& examined, uint32_t index, const Change& change) {
  const Distribution& distribution = examined.all()[index];
  Finding finding;
  finding.certainty = Certainty::kObserved;
  finding.severity = change.code > 0 ? Severity::kWarning : Severity::kNote;
  finding.headline = fmt::format("{} of {} not as installed", count_of(change.files, "file"),
                                 label(distribution) + (change.files == 1 ? " is" : " are"));
  if (change.files == 1) finding.headline += ": " + std::string(change.only);
  std::vector<std::string> examples = change.examples;
  for (const std::string& other : change.others)
    if (examples.size() < kExamples) examples.push_back(other);
  add_reinstall(finding, examined, distribution, examples, change.files,
                "unless you changed it on purpose, install it again");
  return finding;
}

std::vector<Finding> check(const EnvironmentCase& examined) {
  const std::set<uint32_t> shared = rows_claimed_twice(examined);
  std::map<uint32_t, Change> changes;
  for (const ChangedFile& file : examined.changed) {
    if (file.missing || shared.contains(file.row)) continue;
    const InstalledFiles::Row& row = examined.files.rows()[file.row];
    Change& change = changes[row.distribution];
    change.files++;
    change.only = row.record.path;
    if (is_code(row.record.path)) change.code++;
    auto& examples = is_code(row.record.path) ? change.examples : change.others;
    if (examples.size() < kExamples)
      examples.push_back(file.size == row.record.size
                             ? fmt::format("{}: another hash", row.record.path)
                             : fmt::format("{}: {} bytes, {} expected", row.record.path, file.size,
                                           row.record.size));
  }
  std::vector<Finding> findings;
  for (const auto& [index, change] : changes) findings.push_back(describe(examined, index, change));
  return findings;
}

}  // namespace

const Rule kFi003 = {
    "FI003",
    "changed-files",
    Severity::kWarning,
    "Files of a distribution are not what it installed.",
    "  Paths of a RECORD whose size on disk differs (with --verify-hashes: whose content differs), "
    "by\n"
    "  distribution. A warning if Python files or libraries are among them, else a note.",
    "  What was examined and tested as this version is not what runs; another tool may have "
    "written "
    "a\n"
    "  library of another version there.",
    "  A libcudnn.so.9 copied over the one of the wheel.",
    "  Install the distribution again with --force-reinstall --no-deps, unless the change is "
    "yours.",
    "  A change that keeps the size is seen only with --verify-hashes, which reads files of up to "
    "64 MiB.\n"
    "  Scripts, compiled files, the metadata itself, headers, editable installations and packages "
    "of\n"
    "  Debian, RPM and conda are not compared.",
    nullptr,
    check,
};

}  // namespace cohabit::rules
