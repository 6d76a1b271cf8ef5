// What a RECORD names and the disk has not. Files are removed on purpose too: images are slimmed by
// deleting tests, headers and static libraries, and nobody misses them.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "base/addresses.h"
#include "base/paths.h"
#include "facts/python/listed_modules.h"
#include "facts/python/requirement.h"
#include "findings/expected.h"
#include "findings/rules/rules.h"

namespace cohabit::rules {
namespace {

enum class Need : uint8_t { kPackage, kCode, kOther };  // of an import, the greatest first

struct Loss {
  size_t files = 0, code = 0;
  std::vector<std::string> packages;  // directories that lost their own __init__.py
  std::map<Need, std::vector<std::string>> examples;
};

constexpr size_t kExamples = 3;

bool is_code(std::string_view path) {
  return path.ends_with(".py") || path.ends_with(".so") || path.find(".so.") != path.npos;
}

bool is_for_tests(std::string_view path) {
  return path.starts_with("test") || path.find("/test") != path.npos;
}

// "torch/__init__.py"
bool is_package_itself(std::string_view path) {
  const size_t slash = path.find('/');
  return slash != path.npos && path.substr(slash + 1) == "__init__.py";
}

// Without an empty __init__.py (`nvidia` of several distributions) the directory is a namespace
// package, and what lies in it is imported as before.
void add_loss(const EnvironmentCase& examined, const InstalledFiles::Row& row, Loss& loss) {
  const std::string_view path = row.record.path;
  const bool is_empty = row.record.size == 0;
  loss.files++;
  Need need = Need::kOther;
  if (is_code(path) && !is_for_tests(path) && !is_empty) {
    loss.code++;
    need = Need::kCode;
  }
  if (is_package_itself(path) && !is_by_the_way(path) && !is_empty) {
    loss.packages.push_back(directory_of(examined.files.path_of(row)));
    need = Need::kPackage;
  }
  auto& examples = loss.examples[need];
  if (examples.size() < kExamples) examples.emplace_back(path);
}

std::vector<std::string> examples_of(const Loss& loss) {
  std::vector<std::string> examples;
  for (const auto& [need, files] : loss.examples)
    for (const std::string& file : files)
      if (examples.size() < kExamples) examples.push_back(file);
  return examples;
}

Severity severity_of(const Loss& loss) {
  return !loss.packages.empty() ? Severity::kError
         : loss.code > 0        ? Severity::kWarning
                                : Severity::kNote;
}

Finding describe(const EnvironmentCase& examined, uint32_t index, const Loss& loss) {
  const Distribution& distribution = examined.all()[index];
  const auto [begin, end] = examined.files.rows_of(index);
  Finding finding;
  finding.certainty = Certainty::kObserved;
  finding.severity = severity_of(loss);
  finding.headline =
      fmt::format("{} of {} of {} missing", loss.files, count_of(end - begin, "file"),
                  label(distribution) + (loss.files == 1 ? " is" : " are"));
  const std::vector<std::string> examples = examples_of(loss);
  if (loss.files == 1) finding.headline += ": " + examples.front();
  finding.reach.files = loss.packages;
  for (const std::string& package : loss.packages)
    finding.broken.push_back(package + "/__init__.py");
  add_reinstall(finding, examined, distribution, examples, loss.files, "install it again");
  return finding;
}

// A project that is installed in place (its direct_url.json says where) and is not there any more.
std::optional<Finding> describe_project(const EnvironmentCase& examined, const Distribution& one) {
  const auto project = one.editable.empty() ? std::nullopt : path_of_address(one.editable);
  if (!project || examined.tree.stat(*project)) return std::nullopt;
  std::vector<std::string> modules = listed_modules(examined.tree, one);
  if (modules.empty()) modules.push_back(module_named_as(one));
  // Somebody may have led the way to where they are now.
  const auto is_found = [&](const std::string& module) {
    const auto& path = examined.interpreter.module_path;
    return std::any_of(path.begin(), path.end(), [&](const std::string& directory) {
      return examined.tree.stat(directory + "/" + module) ||
             examined.tree.stat(directory + "/" + module + ".py");
    });
  };
  Finding finding;
  finding.certainty = Certainty::kObserved;
  finding.severity =
      std::all_of(modules.begin(), modules.end(), is_found) ? Severity::kNote : Severity::kError;
  finding.headline =
      fmt::format("{} is installed in place from {}, which is not there", label(one), *project);
  for (const std::string& module : modules)
    finding.broken.push_back(fmt::format("{}/{}/__init__.py", *project, module));
  finding.libraries.push_back(library_of(one, one.metadata));
  finding.evidence.push_back(
      fact("file", "the place stands in", one.metadata + "/direct_url.json"));
  finding.help.push_back({"install it again from where it is now", "", Safety::kManual});
  return finding;
}

std::vector<Finding> check(const EnvironmentCase& examined) {
  std::map<uint32_t, Loss> losses;
  for (const ChangedFile& file : examined.changed) {
    if (!file.missing) continue;
    const InstalledFiles::Row& row = examined.files.rows()[file.row];
    add_loss(examined, row, losses[row.distribution]);
  }
  std::vector<Finding> findings;
  for (const auto& [index, loss] : losses) findings.push_back(describe(examined, index, loss));
  for (const Distribution& one : examined.all())
    if (auto finding = describe_project(examined, one)) findings.push_back(std::move(*finding));
  return findings;
}

// What a distribution that stays would lose, and with whom.
Finding describe_expected(const EnvironmentCase& before, const Distribution& stays,
                          const Distribution& goes, const Loss& loss) {
  Finding finding;
  finding.certainty = Certainty::kDeclared;
  finding.severity = severity_of(loss);
  finding.headline = fmt::format("{} of {} would go with {}", count_of(loss.files, "file"),
                                 label(stays), label(goes));
  finding.reach.files = loss.packages;
  finding.libraries = {library_of(stays, stays.metadata), library_of(goes, goes.metadata)};
  finding.evidence.push_back(
      fact("file", fmt::format("both claim {}; installers remove what the RECORD of {} names",
                               list_some(examples_of(loss)), goes.name)));
  finding.help.push_back({fmt::format("install {} again afterwards", stays.name),
                          installer_command(before, "install", again(stays.name, stays.version)),
                          Safety::kSafe});
  return finding;
}

}  // namespace

std::vector<Finding> expect_missing(
    const EnvironmentCase& before, const std::set<std::string>& going,
    const std::function<bool(const std::string&, const std::string&)>& is_written_again) {
  const std::vector<InstalledFiles::Row>& rows = before.files.rows();
  const auto name_of = [&](uint32_t row) { return normal_name(before.owner(rows[row]).name); };
  std::map<std::pair<uint32_t, uint32_t>, Loss> losses;
  for (const std::vector<uint32_t>& group : before.files.claimed_twice()) {
    const auto gone = std::find_if(group.begin(), group.end(), [&](uint32_t row) {
      return going.contains(name_of(row)) &&
             !is_written_again(before.files.path_of(rows[row]), name_of(row));
    });
    if (gone == group.end() || rows[*gone].record.path.ends_with(".pyc")) continue;
    for (const uint32_t row : group)
      if (!going.contains(name_of(row)))
        add_loss(before, rows[row], losses[{rows[row].distribution, rows[*gone].distribution}]);
  }
  std::vector<Finding> findings;
  for (const auto& [pair, loss] : losses)
    findings.push_back(
        describe_expected(before, before.all()[pair.first], before.all()[pair.second], loss));
  return findings;
}

const Rule kFi002 = {
    "FI002",
    "missing-files",
    Severity::kWarning,
    "Files that a distribution installed are gone.",
    "  Paths of a RECORD that do not exist, by distribution. An error if the package's own "
    "__init__.py is\n"
    "  gone; a warning if other Python files or libraries are; else a note. Compiled files, "
    "scripts "
    "and\n"
    "  tests do not count. And projects that are installed in place from a directory that is gone: "
    "an error.",
    "  An import ends with ModuleNotFoundError, or later with a library that cannot be opened.",
    "  An interrupted installation; another distribution that was removed took common files with "
    "it.",
    "  Install the distribution again with --force-reinstall --no-deps.",
    "  A file that no code opens is told as any other. Files outside of site-packages are not "
    "looked "
    "at.",
    nullptr,
    check,
};

}  // namespace cohabit::rules
