#include "actions/check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "actions/check/expected_environment.h"
#include "actions/check/fetch.h"
#include "actions/check/pip_order.h"
#include "actions/check/renamed.h"
#include "facts/cuda/builds.h"
#include "findings/fingerprint.h"
#include "findings/rule.h"

namespace cohabit::check {
namespace {

std::set<std::string> names_of(const Plan& plan) {
  std::set<std::string> names;
  for (const Arrival& arrival : plan.arrivals) names.insert(normal_name(arrival.name));
  return names;
}

std::vector<ExpectedChange> changes_of(const Plan& plan, const Distributions& present) {
  std::vector<ExpectedChange> changes;
  for (const Arrival& arrival : plan.arrivals) {
    const Distribution* before = present.find(arrival.name);
    changes.push_back(change_of(arrival.name, before ? before->version : "", arrival.version));
  }
  for (const Departure& departure : plan.departures)
    changes.push_back(change_of(departure.name, departure.version, ""));
  return changes;
}

void mark_replaced_frameworks(const EnvironmentCase& before, std::vector<ExpectedChange>& changes) {
  std::set<std::string> frameworks;
  for (const cuda::FrameworkBuild& build :
       cuda::read_builds(before.tree, before.interpreter, before.distributions))
    if (build.distribution) frameworks.insert(normal_name(build.distribution->name));
  for (ExpectedChange& change : changes)
    change.replaces_framework = change.because.size() > 1 && !change.from.empty() &&
                                change.from != change.to &&
                                frameworks.contains(normal_name(change.name));
}

// The files of what stays are there: how they go with another NumPy can be told today.
std::vector<Finding> expect_another_numpy(const EnvironmentCase& before, const Plan& plan) {
  std::set<std::string> changed = names_of(plan);
  for (const Departure& departure : plan.departures) changed.insert(normal_name(departure.name));
  for (const Arrival& arrival : plan.arrivals)
    if (normal_name(arrival.name) == "numpy")
      return named_by(*find_rule_by_code("PY005"),
                      rules::numpy_abi(before, arrival.version, changed));
  return {};
}

// What the rules say of today's environment is nobody's fault who installs something.
std::vector<Finding> new_findings(const EnvironmentCase& before, const EnvironmentCase& after,
                                  const ExpectedEnvironment& expected, const Writers& writers,
                                  const Plan& plan) {
  const std::string& prefix = before.interpreter.prefix;
  std::set<std::string> known;
  for (const Finding& finding : check_environment(before))
    known.insert(fingerprint(finding, prefix));
  std::vector<Finding> result;
  std::map<std::string, int> numbers;
  std::vector<Finding> findings = expect_another_numpy(before, plan);
  for (Finding& finding : check_expected(after, writers)) findings.push_back(std::move(finding));
  for (Finding& finding : findings) {
    rename_paths(finding, expected.site(), expected.present_site());
    if (known.contains(fingerprint(finding, prefix))) continue;
    finding.id = fmt::format("{}-{}", finding.code, ++numbers[finding.code]);
    result.push_back(std::move(finding));
  }
  return result;
}

}  // namespace

Result<Outcome> check_install(const Installer& installer, const Interpreter& python,
                              const Distributions& present, const Request& request) {
  const auto site = find_site(python);
  if (!site) return tl::unexpected<Error>(site.error());
  auto plan = ask_installer(installer, python, request);
  if (!plan) return tl::unexpected<Error>(plan.error());
  Outcome outcome;
  outcome.installer = installer;
  outcome.changes = changes_of(*plan, present);
  const Fetched fetched = fetch_wheels(installer, *plan, request, layout_of(python, *site));
  outcome.bytes_fetched = fetched.bytes_fetched;
  outcome.bytes_of_wheels = fetched.bytes_of_wheels;
  outcome.unknowns = plan->unknowns;
  outcome.unknowns.insert(outcome.unknowns.end(), fetched.unknowns.begin(), fetched.unknowns.end());
  const auto expected =
      ExpectedEnvironment::make(python, *site, present, *plan, fetched, installer.tool);
  if (!expected) return tl::unexpected<Error>(expected.error());
  const Tree tree("");
  const EnvironmentCase before(tree, python, present);
  const EnvironmentCase after(tree, expected->python(), expected->distributions());
  const MarkerEnvironment markers = MarkerEnvironment::of(python);
  const auto requested = requested_of(request.arguments, markers);
  const auto chains = find_chains(after, requested);
  for (ExpectedChange& change : outcome.changes)
    if (const auto chain = chains.find(normal_name(change.name)); chain != chains.end())
      change.because = chain->second;
  mark_replaced_frameworks(before, outcome.changes);
  const std::set<std::string> arriving = names_of(*plan);
  const std::vector<std::string> order =
      installer.tool == Tool::kPip ? pip_order(*plan, expected->distributions(), markers, requested)
                                   : std::vector<std::string>{};
  const Writers writers = find_writers(after, arriving, order);
  outcome.overwrites = find_overwrites(after, arriving, writers);
  std::tie(outcome.claimed_twice, outcome.different) = count_claimed_twice(after, arriving);
  outcome.findings = new_findings(before, after, *expected, writers, *plan);
  return outcome;
}

}  // namespace cohabit::check
