// The registry of rules. A rule is its documentation and its check; both live in rules/<code>_*.cc.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "facts/trace/trace.h"
#include "findings/captures.h"
#include "findings/environment.h"
#include "findings/finding.h"
#include "findings/process_view.h"
#include "imports/plan.h"
#include "sim/later_opens.h"

namespace cohabit {

// One examined process. Rules look at it and change nothing.
struct Case {
  const ProcessView& process;
  const Captures& captures;
  const Trace& trace;
  std::vector<std::string> imports;
  const python::Plan* plan = nullptr;            // null: a recorded process
  std::string program;                           // "python app.py"; empty: the imports are all
  const Distributions* distributions = nullptr;  // what is installed; null: unknown
  // After the imports: which phase, and what was opened in it.
  python::Phase phase = python::Phase::kImport;
  const std::vector<sim::LaterOpen>* later = nullptr;
  const sim::LaterOpens* libraries = nullptr;  // knows their versions
  // The real run, if there was one, ended badly.
  bool failed() const { return trace.exit_status && *trace.exit_status != 0; }
};

struct Rule {
  std::string_view code;
  std::string_view slug;
  Severity severity;         // the usual one; a check may say less
  std::string_view summary;  // one line
  std::string_view finds;
  std::string_view matters;
  std::string_view example;
  std::string_view fix;
  std::string_view limits;
  std::vector<Finding> (*check)(const Case&) = nullptr;  // null: looks at no process
  std::vector<Finding> (*check_environment)(const EnvironmentCase&) = nullptr;
};

// In order of code.
const std::vector<const Rule*>& all_rules();
const Rule* find_rule_by_code(std::string_view code);  // case does not matter; null if unknown
// Text for `cohabit explain CODE`.
std::string explain_rule(const Rule& rule);

// What a check has found, with the rule's code and slug.
std::vector<Finding> named_by(const Rule& rule, std::vector<Finding> findings);

// All findings of all rules that look at a process, worst and largest first, with ids.
std::vector<Finding> check_all(const Case& examined);

// The most similar candidate, if one is near enough to be meant.
std::optional<std::string> nearest_name(std::string_view wrong,
                                        const std::vector<std::string>& candidates);

}  // namespace cohabit
