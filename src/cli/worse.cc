#include "cli/worse.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "facts/python/requirement.h"
#include "findings/fingerprint.h"
#include "report/snapshots.h"

namespace cohabit {
namespace {

bool is_word_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

bool mentions(const std::string& text, const std::string& name) {
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !is_word_letter(text[at - 1])) &&
        (end == text.size() || !is_word_letter(text[end])))
      return true;
  }
  return false;
}

bool is_about(const Finding& finding, const PackageChange& change) {
  const std::string name = normal_name(change.name);
  for (const Library& library : finding.libraries)
    if (normal_name(library.distribution) == name) return true;
  return mentions(finding.headline, change.name);
}

// "required by a and b": of those that were installed too, or else of all.
std::string who_requires(const PackageChange& change, const std::vector<PackageChange>& changes,
                         const Distributions& after) {
  std::set<std::string> all, changed;
  for (const Distribution& distribution : after.all())
    for (const std::string& text : distribution.requires_dist) {
      const auto wanted = PackageRequirement::parse(text);
      if (!wanted || normal_name(wanted->name) != normal_name(change.name)) continue;
      if (normal_name(distribution.name) == normal_name(change.name)) continue;  // of an extra
      all.insert(distribution.name);
      for (const PackageChange& other : changes)
        if (other.name == distribution.name) changed.insert(distribution.name);
    }
  const std::set<std::string>& shown = changed.empty() ? all : changed;
  return shown.empty() ? "" : fmt::format(", required by {}", fmt::join(shown, ", "));
}

// Rules that say that one distribution has broken another. Doctor warns of them, since what is
// broken may never be used; to somebody who installs it is a reason to stop.
const std::set<std::string, std::less<>> kBreaking = {"FI001", "FI002", "FI003",
                                                      "PY001", "PY002", "PY005"};

// It is about a distribution that was there before: of a new one we do not know that it ever
// worked.
bool breaks_what_was_there(const Finding& finding, const std::set<std::string>& there) {
  if (finding.severity < Severity::kWarning || !kBreaking.contains(finding.code)) return false;
  const std::string headline = normal_name(finding.headline);
  // The first party of an unmet requirement is what is wanted, the others want it.
  const bool is_requirement = finding.code == "PY001";
  const size_t first = is_requirement && finding.libraries.size() > 1 ? 1 : 0;
  for (size_t i = first; i < finding.libraries.size(); i++)
    if (there.contains(normal_name(finding.libraries[i].distribution))) return true;
  return std::any_of(there.begin(), there.end(), [&](const std::string& name) {
    return mentions(headline, is_requirement ? "by " + name : name);
  });
}

template <class Package>
std::set<std::string> names_of(const std::vector<Package>& packages) {
  std::set<std::string> names;
  for (const Package& package : packages) names.insert(normal_name(package.name));
  return names;
}

// An error, or a warning that one of these (normal names), which were there before, is broken.
bool is_worse(const Finding& finding, const std::set<std::string>& there) {
  return finding.severity == Severity::kError || breaks_what_was_there(finding, there);
}

}  // namespace

std::pair<std::string, Severity> key_of(const Finding& finding, const std::string& fingerprint) {
  return {kBreaking.contains(finding.code) ? key_across_versions(finding) : fingerprint,
          finding.severity};
}

Refusal refusal_of(const std::vector<Finding>& findings, const std::vector<ExpectedChange>& changes,
                   const Distributions& there) {
  const std::set<std::string> names = names_of(there.all());
  Refusal refusal;
  for (const Finding& finding : findings)
    if (is_worse(finding, names)) refusal.findings.push_back(&finding);
  for (const ExpectedChange& change : changes)
    if (change.replaces_framework) refusal.replaced.push_back(&change);
  return refusal;
}

Worse find_worse(const Examination& before, const Examination& after,
                 const std::vector<SnapshotPackage>& packages_before) {
  Worse worse;
  for (const auto& [imports, verdict] : after.verdicts) {
    const auto known = before.verdicts.find(imports);
    if (verdict == "unsound" && known != before.verdicts.end() && known->second == "sound")
      worse.orders.push_back(imports);
  }
  // The same finding may have become worse.
  std::set<std::pair<std::string, Severity>> known;
  for (size_t i = 0; i < before.findings.size(); i++)
    known.insert(key_of(before.findings[i], before.fingerprints[i]));
  const std::set<std::string> there = names_of(packages_before);
  for (size_t i = 0; i < after.findings.size(); i++) {
    const Finding& finding = after.findings[i];
    if (!is_worse(finding, there)) continue;
    if (known.insert(key_of(finding, after.fingerprints[i])).second)
      worse.findings.push_back(&finding);
  }
  return worse;
}

std::vector<PackageChange> suspects(const std::vector<PackageChange>& changes,
                                    const std::vector<Finding>& findings) {
  std::vector<PackageChange> result;
  for (const PackageChange& change : changes)
    if (change.before.empty() &&
        std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
          return finding.severity >= Severity::kWarning && kBreaking.contains(finding.code) &&
                 is_about(finding, change);
        }))
      result.push_back(change);
  return result;
}

std::vector<Altered> find_altered(const Snapshot& before, const Snapshot& now,
                                  const KeptEnvironment& after,
                                  const std::vector<PackageChange>& changes) {
  const std::set<std::string> changed = names_of(changes);
  std::map<uint32_t, Altered> altered;
  for (const FileChange& change : compare_files(before, now, same_content)) {
    if (!change.before || !change.after || change.before->hash == change.after->hash) continue;
    const auto claim = after.claims.claimed(change.path());
    if (!claim || claim->hash == change.after->hash) continue;
    const Distribution& distribution = after.distributions.all()[claim->distribution];
    if (changed.contains(normal_name(distribution.name))) continue;
    Altered& one = altered[claim->distribution];
    one.package = {distribution.name, distribution.version, distribution.version};
    one.files.push_back(change.path());
  }
  std::vector<Altered> result;
  for (auto& [number, one] : altered) result.push_back(std::move(one));
  return result;
}

std::string culprit(const PackageChange& change, const std::vector<PackageChange>& changes,
                    const Distributions& after) {
  return report::package_change(change) + who_requires(change, changes, after);
}

std::vector<std::string> find_culprits(const Worse& worse,
                                       const std::vector<PackageChange>& changes,
                                       const Distributions& after) {
  std::vector<std::string> culprits;
  for (const PackageChange& change : changes)
    if (std::any_of(worse.findings.begin(), worse.findings.end(),
                    [&](const Finding* finding) { return is_about(*finding, change); }))
      culprits.push_back(culprit(change, changes, after));
  // Nothing is named: it is one of those that changed.
  if (culprits.empty())
    for (const PackageChange& change : changes) culprits.push_back(culprit(change, changes, after));
  return culprits;
}

}  // namespace cohabit
