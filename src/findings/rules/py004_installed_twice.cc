// pip removes the old version before it installs the new one, and renames what it is about to
// delete to "~ame". Stopped halfway, or mixed with another installer, it leaves two descriptions of
// one distribution, or a description without content.
#include <fmt/format.h>

#include <unistd.h>

#include <cerrno>
#include <map>
#include <string_view>

#include "base/paths.h"
#include "base/rows.h"
#include "base/text.h"
#include "facts/python/requirement.h"
#include "findings/copies.h"
#include "findings/rules/rules.h"

namespace cohabit::rules {
namespace {

Finding twice(const EnvironmentCase& examined, const std::vector<const Distribution*>& copies) {
  Finding finding;
  const Distribution& first = *copies.front();
  bool same_version = true, same_place = false;
  for (size_t i = 1; i < copies.size(); i++) {
    same_version = same_version && copies[i]->version == first.version;
    same_place = same_place || copies[i]->site == first.site;
  }
  for (const Distribution* copy : copies) {
    finding.evidence.push_back(
        fact("file", fmt::format("{} in {}", label(*copy), copy->metadata), copy->metadata));
    finding.libraries.push_back(library_of(*copy, copy->metadata));
  }
  finding.severity = same_version ? Severity::kNote : Severity::kWarning;
  finding.certainty = Certainty::kObserved;
  std::vector<std::string> versions;
  for (const Distribution* copy : copies) versions.push_back(copy->version);
  if (same_place)
    finding.headline =
        fmt::format("{} is installed {} times in one place: {}; whose files are there is not sure",
                    first.name, copies.size(), list_some(versions));
  else
    finding.headline = fmt::format("{} is what Python finds; {} behind it is hidden", label(first),
                                   label(*copies.back()) + " in " + copies.back()->site);
  finding.help.push_back({same_place ? "remove it until nothing is left, and install it again"
                                     : "remove the copy that is not meant",
                          same_place ? installer_command(examined, "uninstall", {first.name}) : "",
                          Safety::kUnsafe});
  return finding;
}

const char* what_is_wrong(const Tree& tree, const std::string& file) {
  if (!tree.stat(file)) return "it has no METADATA";
  const auto opened = tree.open(file);
  if (opened) ::close(*opened);
  return !opened && opened.error() == EACCES ? "this user may not read its METADATA"
                                             : "its METADATA is damaged";
}

Finding broken(const Tree& tree, const Distribution& distribution) {
  Finding finding;
  finding.severity = Severity::kWarning;
  finding.certainty = Certainty::kObserved;
  finding.headline = fmt::format("the metadata of {} cannot be read: {}", label(distribution),
                                 what_is_wrong(tree, distribution.metadata + "/METADATA"));
  finding.libraries.push_back(library_of(distribution, distribution.metadata));
  finding.evidence.push_back(fact("file", distribution.metadata, distribution.metadata));
  finding.help.push_back(
      {"install the distribution again; if it is not wanted, delete that directory", "",
       Safety::kUnsafe});
  return finding;
}

Finding leftovers(const std::vector<std::string>& paths) {
  Finding finding;
  finding.severity = Severity::kNote;
  finding.certainty = Certainty::kObserved;
  finding.headline = fmt::format("{} of a stopped removal: {}", count_of(paths.size(), "leftover"),
                                 list_some(paths));
  for (size_t i = 0; i < std::min<size_t>(paths.size(), 3); i++)
    finding.evidence.push_back(fact("file", paths[i], paths[i]));
  std::string command = "rm -r --";
  for (const std::string& path : paths) command += " " + shell_word(path);
  finding.help.push_back({"delete them", command, Safety::kUnsafe});
  return finding;
}

// Whether a .pth file among the distribution's own puts the directory into sys.path.
bool puts_on_path(const EnvironmentCase& examined, const Distribution& in_place,
                  const std::string& directory) {
  const auto index = static_cast<uint32_t>(&in_place - examined.all().data());
  const auto [begin, end] = examined.files.rows_of(index);
  for (size_t i = begin; i < end; i++) {
    const InstalledFiles::Row& row = examined.files.rows()[i];
    if (!row.record.path.ends_with(".pth")) continue;
    const std::string text = examined.tree.read_text(examined.files.path_of(row)).value_or("");
    for (const std::string_view line : split(text, '\n'))
      if (!trim(line).empty() && join_normal(in_place.site, trim(line)) == directory) return true;
  }
  return false;
}

// setuptools writes an egg-info beside the source of a project that is installed in place.
bool is_of_project(const EnvironmentCase& examined, const Distribution& egg,
                   const Distribution& in_place) {
  constexpr std::string_view kFile = "file://";
  const bool is_below_it = in_place.editable.starts_with(kFile) &&
                           is_below(egg.metadata, in_place.editable.substr(kFile.size()));
  return is_below_it || puts_on_path(examined, in_place, egg.site);
}

// Debian keeps an egg-info beside a dist-info.
bool is_same_installation(const EnvironmentCase& examined, const Distribution& a,
                          const Distribution& b) {
  return a.metadata.ends_with(".dist-info") != b.metadata.ends_with(".dist-info") &&
         a.version == b.version &&
         (a.site == b.site || is_of_project(examined, a, b) || is_of_project(examined, b, a));
}

std::vector<Finding> check(const EnvironmentCase& examined) {
  std::vector<Finding> findings;
  std::map<std::string, std::vector<const Distribution*>> copies;
  for (const Distribution& distribution : examined.all()) {
    const bool is_wheel = distribution.metadata.ends_with(".dist-info");
    if (is_wheel && !distribution.has_metadata)
      findings.push_back(broken(examined.tree, distribution));
  }
  for (const Distribution* one : without_repeats(examined.distributions, examined.interpreter)) {
    std::vector<const Distribution*>& group = copies[normal_name(one->name)];
    if (group.empty() || !is_same_installation(examined, *group.front(), *one))
      group.push_back(one);
  }
  for (const auto& [name, group] : copies)
    if (group.size() > 1) findings.push_back(twice(examined, group));
  if (!examined.distributions.leftovers().empty())
    findings.push_back(leftovers(examined.distributions.leftovers()));
  return findings;
}

}  // namespace

const Rule kPy004 = {
    "PY004",
    "installed-twice",
    Severity::kWarning,
    "A distribution is installed twice, or only halfway.",
    "  Two descriptions (dist-info, egg-info) of one name, in one directory or in several of\n"
    "  sys.path; a dist-info without METADATA, or with one that names nothing; directories ~NAME "
    "that a\n"
    "  stopped pip left. A note where the versions are the same and for leftovers; else a warning.",
    "  Files of both versions lie mixed, or another version is imported than the one that was "
    "just\n"
    "  installed: requirements are checked against one, and the other runs.",
    "  torch 2.0.1 in ~/.local hides torch 2.6.0 of the environment.",
    "  Remove the copy that is not meant; PYTHONNOUSERSITE=1 leaves out ~/.local.",
    "  Of a venv with --system-site-packages, copies in its base are not named: to put others "
    "before "
    "them\n"
    "  is what it is for. conda's own record of a package that has a dist-info is no second copy,\n"
    "  nor is what setuptools leaves beside the source of a project that is installed in place.",
    nullptr,
    check,
};

}  // namespace cohabit::rules
