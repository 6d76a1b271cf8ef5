// What a RECORD names and the disk has not. Files are removed on purpose too: images are slimmed by
// deleting tests, headers and static libraries, and nobody misses them.
#include <fmt/format.h>

#include <map>

#include "base/paths.h"
#include "findings/rules/rules.h"

namespace cohabit::rules {
namespace {

struct Loss {
  size_t files = 0, code = 0;
  std::vector<std::string> packages;  // directories that lost their own __init__.py
  std::vector<std::string> examples;
};

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

Finding describe(const EnvironmentCase& examined, uint32_t index, const Loss& loss) {
  const Distribution& distribution = examined.all()[index];
  const auto [begin, end] = examined.files.rows_of(index);
  Finding finding;
  finding.certainty = Certainty::kObserved;
  finding.severity = !loss.packages.empty() ? Severity::kError
                     : loss.code > 0        ? Severity::kWarning
                                            : Severity::kNote;
  finding.headline =
      fmt::format("{} of {} of {} missing", loss.files, count_of(end - begin, "file"),
                  label(distribution) + (loss.files == 1 ? " is" : " are"));
  finding.reach.files = loss.packages;
  add_reinstall(finding, examined, distribution, loss.examples, loss.files, "install it again");
  return finding;
}

std::vector<Finding> check(const EnvironmentCase& examined) {
  std::map<uint32_t, Loss> losses;
  for (const ChangedFile& file : examined.changed) {
    if (!file.missing) continue;
    const InstalledFiles::Row& row = examined.files.rows()[file.row];
    Loss& loss = losses[row.distribution];
    loss.files++;
    const std::string_view path = row.record.path;
    if (is_code(path) && !is_for_tests(path)) loss.code++;
    if (is_package_itself(path) && !is_by_the_way(path))
      loss.packages.push_back(directory_of(examined.files.path_of(row)));
    if (loss.examples.size() < 3) loss.examples.emplace_back(path);
  }
  std::vector<Finding> findings;
  for (const auto& [index, loss] : losses) findings.push_back(describe(examined, index, loss));
  return findings;
}

}  // namespace

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
    "  tests do not count.",
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
