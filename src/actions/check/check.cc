#include "actions/check/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "actions/check/expected_environment.h"
#include "actions/check/fetch.h"
#include "actions/check/pip_order.h"
#include "actions/check/renamed.h"
#include "base/paths.h"
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

// That are removed, or replaced by another version.
std::set<std::string> names_that_change(const Plan& plan) {
  std::set<std::string> names = names_of(plan);
  for (const Departure& departure : plan.departures) names.insert(normal_name(departure.name));
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
  std::map<std::string, std::string> modules;  // of frameworks, by their distribution
  for (const cuda::FrameworkBuild& build :
       cuda::read_builds(before.tree, before.interpreter, before.distributions))
    if (build.distribution)
      modules[normal_name(build.distribution->name)] = normal_name(std::string(build.module));
  for (ExpectedChange& change : changes) {
    const auto framework = modules.find(normal_name(change.name));
    if (framework == modules.end() || change.because.size() < 2) continue;
    // Who asks for jax asks for jaxlib.
    const auto request = PackageRequirement::parse(change.because.front());
    if (request && normal_name(request->name) == framework->second) continue;
    change.replaces_framework = !change.from.empty() && change.from != change.to;
  }
}

// The files of what stays are there: how they go with another NumPy, and another protobuf, can be
// told today.
std::vector<Finding> expect_other_runtimes(const EnvironmentCase& before,
                                           const EnvironmentCase& after, const Plan& plan) {
  const std::set<std::string> changed = names_that_change(plan);
  std::vector<Finding> findings;
  for (const Arrival& arrival : plan.arrivals)
    if (normal_name(arrival.name) == "numpy")
      findings =
          named_by(*find_rule_by_code("PY005"), rules::numpy_abi(before, arrival.version, changed));
  if (changed.contains("protobuf"))
    for (Finding& finding :
         named_by(*find_rule_by_code("PY006"), rules::protobuf_gencode(before, after, changed)))
      findings.push_back(std::move(finding));
  return findings;
}

// What an installer's plan comes to: the environment before and after it, side by side.
class Comparison {
 public:
  Comparison(const Interpreter& python, const Distributions& present, const Plan& plan,
             const ExpectedEnvironment& expected, std::vector<std::string> order)
      : plan_(plan),
        expected_(expected),
        order_(std::move(order)),
        arriving_(names_of(plan)),
        before_(tree_, python, present),
        after_(tree_, expected.python(), expected.distributions()),
        writers_(find_writers(after_, arriving_, order_)) {}

  // Arrivals that require another version of what would be there.
  std::set<std::string> unhappy() const;
  std::vector<Finding> new_findings() const;
  void compare(const std::vector<PackageRequirement>& requested, Outcome& outcome) const;

 private:
  std::vector<Finding> expect_missing() const;

  const Plan& plan_;
  const ExpectedEnvironment& expected_;
  const Tree tree_{""};
  const std::vector<std::string> order_;  // of arrivals; empty: undecided
  const std::set<std::string> arriving_;
  const EnvironmentCase before_, after_;
  const Writers writers_;
};

std::set<std::string> Comparison::unhappy() const {
  std::set<std::string> names = rules::wanting_other_versions(after_);
  std::erase_if(names, [&](const std::string& name) { return !arriving_.contains(name); });
  return names;
}

// pip removes an old version when the turn comes to its new one, and then writes that one and the
// later ones; uv removes all old versions first.
std::vector<Finding> Comparison::expect_missing() const {
  const auto turn_of = [&](const std::string& name) {
    return std::find(order_.begin(), order_.end(), name) - order_.begin();
  };
  std::map<std::string, std::ptrdiff_t> written;  // by path: the last turn
  for (const InstalledFiles::Row& row : after_.files.rows()) {
    const std::string name = normal_name(after_.owner(row).name);
    if (!arriving_.contains(name)) continue;
    std::ptrdiff_t& turn = written[join_normal(expected_.present_site(), row.record.path)];
    turn = std::max(turn, turn_of(name));
  }
  const auto is_written_again = [&](const std::string& path, const std::string& going) {
    const auto found = written.find(path);
    return found != written.end() && (order_.empty() || found->second >= turn_of(going));
  };
  return named_by(*find_rule_by_code("FI002"),
                  rules::expect_missing(before_, names_that_change(plan_), is_written_again));
}

// What the rules say of today's environment is nobody's fault who installs something.
std::vector<Finding> Comparison::new_findings() const {
  const auto key_of = [](const Finding& finding) {
    return std::pair(finding.severity, key_across_versions(finding));
  };
  std::set<std::pair<Severity, std::string>> known;
  for (const Finding& finding : check_environment(before_)) known.insert(key_of(finding));
  std::vector<Finding> result;
  std::map<std::string, int> numbers;
  std::vector<Finding> findings = expect_other_runtimes(before_, after_, plan_);
  for (Finding& finding : expect_missing()) findings.push_back(std::move(finding));
  for (Finding& finding :
       named_by(*find_rule_by_code("PY302"),
                rules::expect_withdrawn(before_, after_, names_that_change(plan_))))
    findings.push_back(std::move(finding));
  for (Finding& finding : check_expected(before_, after_, writers_))
    findings.push_back(std::move(finding));
  for (Finding& finding : findings) {
    rename_paths(finding, expected_.site(), expected_.present_site());
    if (known.contains(key_of(finding))) continue;
    finding.id = fmt::format("{}-{}", finding.code, ++numbers[finding.code]);
    result.push_back(std::move(finding));
  }
  return result;
}

void Comparison::compare(const std::vector<PackageRequirement>& requested, Outcome& outcome) const {
  const auto chains = find_chains(after_, requested);
  for (ExpectedChange& change : outcome.changes)
    if (const auto chain = chains.find(normal_name(change.name)); chain != chains.end())
      change.because = chain->second;
  mark_replaced_frameworks(before_, outcome.changes);
  outcome.overwrites = find_overwrites(after_, arriving_, writers_);
  std::tie(outcome.claimed_twice, outcome.different) = count_claimed_twice(after_, arriving_);
  outcome.findings = new_findings();
}

// An answer about wheels of which none was read would say that all is well.
std::string why_unread(const Plan& plan, const Request& request) {
  if (!plan.is_blind()) return "";
  std::string built;
  bool are_all_built = true;
  for (const Arrival& one : plan.arrivals)
    if (one.has_no_wheel)
      built += fmt::format("{}{} {}", built.empty() ? "" : ", ", one.name, one.version);
    else
      are_all_built = false;
  if (!are_all_built)
    return "none of the wheels that would be installed could be read: the installer does not say "
           "where they are (the report says why)";
  if (request.allow_build) return "";
  return fmt::format(
      "nothing of what would be installed can be read: for this Python there is no wheel of {}, "
      "which would have to be built; ask for a version that has one, or let the installer build "
      "with --allow-build",
      built);
}

Result<Outcome> check_plan(const Installer& installer, const Interpreter& python,
                           const Distributions& present, const Request& request, const Plan& plan) {
  const auto site = find_site(python);
  if (!site) return tl::unexpected<Error>(site.error());
  Outcome outcome;
  outcome.installer = installer;
  outcome.changes = changes_of(plan, present);
  outcome.unread = why_unread(plan, request);
  const wheels::WebSettings settings =
      needs_web(plan) ? web_settings(installer, request) : wheels::WebSettings{};
  Fetched fetched = fetch_wheels(plan, settings, layout_of(python, *site));
  outcome.bytes_of_wheels = fetched.bytes_of_wheels;
  const auto expected =
      ExpectedEnvironment::make(python, *site, present, plan, fetched, installer.tool);
  if (!expected) return tl::unexpected<Error>(expected.error());
  const MarkerEnvironment markers = MarkerEnvironment::of(python);
  const auto requested = requested_of(request, markers);
  const Comparison comparison(python, present, plan, *expected,
                              installer.tool == Tool::kPip
                                  ? pip_order(plan, expected->distributions(), markers, requested)
                                  : std::vector<std::string>{});
  // What a wheel's own code says of a version is read only where it does not fit anyway.
  const auto refusals = fetch_refusals(plan, comparison.unhappy(), fetched);
  if (auto added = expected->add_modules(refusals); !added)
    return tl::unexpected<Error>(added.error());
  comparison.compare(requested, outcome);
  outcome.bytes_fetched = fetched.bytes_fetched();
  outcome.unknowns = plan.unknowns;
  outcome.unknowns.insert(outcome.unknowns.end(), fetched.unknowns.begin(), fetched.unknowns.end());
  return outcome;
}

// An uninstall says itself what goes.
Plan plan_of_removal(const Interpreter& python, const Distributions& present,
                     const Request& request) {
  Plan plan;
  for (const PackageRequirement& named : requested_of(request, MarkerEnvironment::of(python)))
    if (const Distribution* there = present.find(named.name))
      plan.departures.push_back({there->name, there->version});
  return plan;
}

}  // namespace

Result<Outcome> check_install(const Installer& installer, const Interpreter& python,
                              const Distributions& present, const Request& request) {
  const auto plan = request.verb == Verb::kUninstall
                        ? Result<Plan>(plan_of_removal(python, present, request))
                        : ask_installer(installer, python, request);
  if (!plan) return tl::unexpected<Error>(plan.error());
  return check_plan(installer, python, present, request, *plan);
}

}  // namespace cohabit::check
