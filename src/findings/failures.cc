#include "findings/failures.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include "findings/words.h"

namespace cohabit {
namespace {

struct Failure {
  std::string name;
  std::string message;
  std::string caller;
  std::vector<sim::SearchStep> search;
};

bool ended_with_error(const Case& examined) {
  if (examined.plan) return !examined.plan->failure.empty();
  const auto& status = examined.trace.exit_status;
  return status && WIFEXITED(*status) && WEXITSTATUS(*status) != 0;
}

std::vector<Failure> fatal_failures(const Case& examined) {
  const sim::Simulation& simulation = examined.process.simulation();
  if (!simulation.start_error().empty())
    return {{examined.trace.start.program, simulation.start_error(), "", {}}};
  if (!ended_with_error(examined)) return {};
  const auto& results = simulation.results();
  const auto& calls = examined.trace.calls;
  for (size_t i = std::min(results.size(), calls.size()); i-- > 0;) {
    if (!results[i].failed) continue;
    const std::string name = calls[i].name.value_or("");
    for (size_t later = i + 1; later < std::min(results.size(), calls.size()); later++)
      if (calls[later].name == calls[i].name && results[later].object != kNone) return {};
    return {{name, results[i].error, calls[i].caller, results[i].search}};
  }
  return {};
}

}  // namespace

std::vector<Finding> failed_opens(const Case& examined, std::string_view phrase,
                                  std::string_view headline, std::string_view help) {
  std::vector<Finding> findings;
  for (const Failure& failure : fatal_failures(examined)) {
    if (failure.message.find(phrase) == std::string::npos) continue;
    Finding finding;
    finding.severity = Severity::kError;
    finding.headline = fmt::format("{}: {}{}", failure.name.substr(failure.name.rfind('/') + 1),
                                   headline, when_imported(examined));
    finding.libraries.push_back({failure.name, "", ""});
    finding.evidence.push_back(
        {"search", "ld.so says: " + failure.message, failure.caller, failure.name, -1, -1, ""});
    for (const sim::SearchStep& step : failure.search)
      finding.evidence.push_back({"place",
                                  fmt::format("{} ({}): {}", step.path, step.because, step.outcome),
                                  "", step.path, -1, -1, ""});
    finding.help.push_back({std::string(help), "", Safety::kManual});
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace cohabit
