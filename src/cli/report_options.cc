#include "cli/report_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "findings/rule.h"

namespace cohabit {
namespace {

const std::vector<std::string> kFormats = {"full", "concise", "json", "sarif", "github"};
const std::vector<std::string> kLevels = {"error", "warning", "note", "never"};

Result<void> check_choice(const std::string& option, const std::string& value,
                          const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return {};
  const auto near = nearest_name(value, choices);
  return fail(fmt::format("{} cannot be {}; it is one of {}{}", option, value,
                          fmt::join(choices, ", "),
                          near ? fmt::format(" (did you mean {}?)", *near) : ""));
}

}  // namespace

Result<void> check_report_options(const std::string& format, const std::string& fail_on) {
  if (auto good = check_choice("--format", format, kFormats); !good) return good;
  return fail_on.empty() ? Result<void>() : check_choice("--fail-on", fail_on, kLevels);
}

bool reaches(const std::vector<Finding>& findings, const std::string& level) {
  if (level == "never") return false;
  const Severity least = level == "error"     ? Severity::kError
                         : level == "warning" ? Severity::kWarning
                                              : Severity::kNote;
  return std::any_of(findings.begin(), findings.end(),
                     [&](const Finding& finding) { return finding.severity >= least; });
}

}  // namespace cohabit
