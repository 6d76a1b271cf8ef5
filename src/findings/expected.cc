#include "findings/expected.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>

#include "findings/rule.h"

namespace cohabit {
namespace {

constexpr std::string_view kOfMetadata[] = {"PY002", "PY003", "PY004"};

constexpr size_t kExamples = 3;

bool is_arriving(const EnvironmentCase& examined, const InstalledFiles::Row& row,
                 const std::set<std::string>& arriving) {
  return arriving.contains(normal_name(examined.owner(row).name));
}

bool is_counted(std::string_view path) {
  return !path.ends_with(".pyc");
}

// Contents are known by their hashes; without one, a size that differs tells too.
bool differ(const RecordRow& a, const RecordRow& b) {
  if (!a.hash.empty() && !b.hash.empty()) return a.hash != b.hash;
  return a.size >= 0 && b.size >= 0 && a.size != b.size;
}

using Rows = std::vector<const InstalledFiles::Row*>;

// Every group of claims on one path that would change.
template <class Visit>
void for_each_group(const EnvironmentCase& examined, const std::set<std::string>& arriving,
                    Visit visit) {
  for (const std::vector<uint32_t>& group : examined.files.claimed_twice()) {
    Rows rows;
    for (const uint32_t row : group) rows.push_back(&examined.files.rows()[row]);
    if (!is_counted(rows.front()->record.path)) continue;
    if (std::any_of(rows.begin(), rows.end(),
                    [&](const auto* row) { return is_arriving(examined, *row, arriving); }))
      visit(rows);
  }
}

// A requirement as it stands, without its marker.
std::string bare(const PackageRequirement& requirement) {
  std::string text = requirement.name;
  if (!requirement.extras.empty()) text += fmt::format("[{}]", fmt::join(requirement.extras, ","));
  if (!requirement.url.empty()) return text + " @ " + requirement.url;
  return text + requirement.specifiers.text();
}

}  // namespace

std::string_view kind_name(ExpectedKind kind) {
  switch (kind) {
    case ExpectedKind::kAdded:
      return "added";
    case ExpectedKind::kUpgraded:
      return "upgraded";
    case ExpectedKind::kDowngraded:
      return "downgraded";
    case ExpectedKind::kReinstalled:
      return "reinstalled";
    case ExpectedKind::kRemoved:
      return "removed";
  }
  return "";
}

ExpectedChange change_of(const std::string& name, const std::string& from, const std::string& to) {
  ExpectedChange change{name, from, to, ExpectedKind::kAdded, {}};
  const auto before = PythonVersion::parse(from), after = PythonVersion::parse(to);
  if (from.empty())
    change.kind = ExpectedKind::kAdded;
  else if (to.empty())
    change.kind = ExpectedKind::kRemoved;
  else if (from == to || (before && after && *before == *after))
    change.kind = ExpectedKind::kReinstalled;
  else
    change.kind =
        before && after && *after < *before ? ExpectedKind::kDowngraded : ExpectedKind::kUpgraded;
  return change;
}

Writers find_writers(const EnvironmentCase& examined, const std::set<std::string>& arriving,
                     const std::vector<std::string>& order) {
  Writers writers;
  for_each_group(examined, arriving, [&](const Rows& rows) {
    std::vector<std::string> coming;
    for (const InstalledFiles::Row* row : rows)
      if (is_arriving(examined, *row, arriving))
        coming.push_back(normal_name(examined.owner(*row).name));
    std::string& last = writers[examined.files.path_of(*rows.front())];
    if (coming.size() == 1) last = coming.front();
    for (const std::string& name : order)
      if (std::find(coming.begin(), coming.end(), name) != coming.end()) last = name;
  });
  return writers;
}

std::vector<Overwrite> find_overwrites(const EnvironmentCase& examined,
                                       const std::set<std::string>& arriving,
                                       const Writers& writers) {
  std::map<std::pair<uint32_t, uint32_t>, Overwrite> pairs;
  std::map<std::pair<uint32_t, uint32_t>, std::set<std::string>> winners;
  const auto add = [&](const InstalledFiles::Row& a, const InstalledFiles::Row& b) {
    if (!is_arriving(examined, a, arriving) && !is_arriving(examined, b, arriving)) return;
    const std::pair key{a.distribution, b.distribution};
    Overwrite& pair = pairs[key];
    pair.count++;
    if (!differ(a.record, b.record)) return;
    if (pair.different++ < kExamples) pair.examples.emplace_back(a.record.path);
    const auto writer = writers.find(examined.files.path_of(a));
    winners[key].insert(writer == writers.end() ? "" : writer->second);
  };
  for_each_group(examined, arriving, [&](const Rows& rows) {
    for (size_t i = 0; i < rows.size(); i++)
      for (size_t j = i + 1; j < rows.size(); j++) add(*rows[i], *rows[j]);
  });
  std::vector<Overwrite> result;
  for (auto& [key, pair] : pairs) {
    pair.first = label(examined.all()[key.first]);
    pair.second = label(examined.all()[key.second]);
    if (winners[key].size() == 1) pair.winner = *winners[key].begin();
    result.push_back(std::move(pair));
  }
  std::stable_sort(result.begin(), result.end(), [](const Overwrite& a, const Overwrite& b) {
    return std::pair(a.different, a.count) > std::pair(b.different, b.count);
  });
  return result;
}

std::pair<size_t, size_t> count_claimed_twice(const EnvironmentCase& examined,
                                              const std::set<std::string>& arriving) {
  size_t claimed = 0, different = 0;
  for_each_group(examined, arriving, [&](const Rows& rows) {
    claimed++;
    different += std::any_of(rows.begin() + 1, rows.end(), [&](const auto* row) {
      return differ(rows.front()->record, row->record);
    });
  });
  return {claimed, different};
}

std::map<std::string, std::vector<std::string>> find_chains(
    const EnvironmentCase& examined, const std::vector<PackageRequirement>& requested) {
  const MarkerEnvironment environment = MarkerEnvironment::of(examined.interpreter);
  std::map<std::string, std::vector<std::string>> chains;
  std::set<std::pair<std::string, std::string>> seen;
  struct Step {
    std::string name, extra;
    std::vector<std::string> chain;
  };
  std::deque<Step> waiting;
  const auto go = [&](const PackageRequirement& requirement, std::vector<std::string> chain) {
    chain.push_back(bare(requirement));
    const std::string name = normal_name(requirement.name);
    chains.emplace(name, chain);
    if (seen.emplace(name, "").second) waiting.push_back({name, "", chain});
    for (const std::string& extra : requirement.extras)
      if (seen.emplace(name, extra).second) waiting.push_back({name, extra, chain});
  };
  for (const PackageRequirement& requirement : requested) go(requirement, {});
  for (; !waiting.empty(); waiting.pop_front()) {
    const Step& step = waiting.front();
    const Distribution* distribution = examined.distributions.find(step.name);
    if (!distribution) continue;
    for (const std::string& text : distribution->requires_dist) {
      const auto requirement = PackageRequirement::parse(text);
      if (requirement && requirement->applies(environment, step.extra))
        go(*requirement, step.chain);
    }
  }
  return chains;
}

std::vector<Finding> check_expected(const EnvironmentCase& before, const EnvironmentCase& after,
                                    const Writers& writers) {
  auto findings = named_by(*find_rule_by_code("FI001"), rules::expect_overwritten(after, writers));
  for (Finding& finding : named_by(*find_rule_by_code("PY001"), rules::expect_unmet(before, after)))
    findings.push_back(std::move(finding));
  for (const std::string_view code : kOfMetadata) {
    const Rule& rule = *find_rule_by_code(code);
    for (Finding& finding : named_by(rule, rule.check_environment(after)))
      findings.push_back(std::move(finding));
  }
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return findings;
}

}  // namespace cohabit
