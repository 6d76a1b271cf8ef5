#include "findings/judged_variables.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "base/rows.h"
#include "facts/cuda/builds.h"
#include "findings/rule.h"
#include "findings/toolkit.h"
#include "findings/variables.h"

namespace cohabit {
namespace {

constexpr std::string_view kNotes =
#include "data/variable_notes.inc"
    ;

// Of the table.
void add_notes(const std::string& value, JudgedVariable& variable) {
  for (const TableRow& row : table_rows(kNotes, 5))
    if (row[0] == variable.name && fnmatch(std::string(row[1]).c_str(), value.c_str(), 0) == 0)
      variable.notes.emplace_back(row[3]);
}

// XLA_FLAGS may name a directory in which XLA finds nothing.
void add_toolkit_notes(const EnvironmentCase& examined, const std::string& value,
                       JudgedVariable& variable) {
  if (value.find("--xla_gpu_cuda_data_dir=") == std::string::npos) return;
  for (const cuda::FrameworkBuild& build :
       cuda::read_builds(examined.tree, examined.interpreter, examined.distributions)) {
    if (!build.cuda || (build.module != "tensorflow" && build.module != "jax")) continue;
    const ToolkitSearch search = search_toolkit(examined.tree, examined.options.variables, build);
    if (!search.outcomes.empty())
      variable.notes.push_back(fmt::format("{}: {}", build.module, search.outcomes.front()));
  }
}

void add_directory_note(const EnvironmentCase& examined, const std::string& value,
                        JudgedVariable& variable) {
  if (const auto status = examined.tree.stat(value); !status || !status->is_directory())
    variable.notes.emplace_back("names a directory that is not there");
}

bool mentions(const Finding& finding, const std::string& name) {
  for (std::string_view rest = finding.headline; !rest.empty();) {
    const size_t end = rest.find_first_of(" ,:");
    if (rest.substr(0, end) == name) return true;
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  }
  return false;
}

void add_all_notes(const EnvironmentCase& examined, JudgedVariable& variable) {
  const std::string& value = examined.options.variables.at(variable.name);
  add_notes(value, variable);
  if (variable.name == "XLA_FLAGS") add_toolkit_notes(examined, value, variable);
  if (variable.name == "CUDA_HOME" || variable.name == "CUDA_PATH")
    add_directory_note(examined, value, variable);
}

// Who reads each, whatever it is set to.
VariableJudgement judge_names(const EnvironmentCase& examined, const VariableMap& variables) {
  VariableJudgement result;
  const SetVariables set = judge_variables(examined, variables);
  for (const auto& [name, by] : set.read)
    result.variables.push_back({name, VariableVerdict::kRead, by, {}});
  for (const std::string& name : set.unread)
    result.variables.push_back({name, VariableVerdict::kUnread, "nobody here reads it", {}});
  for (const auto& [name, meant] : set.misspelled)
    result.variables.push_back({name, VariableVerdict::kMisspelled, meant + " is meant?", {}});
  std::sort(result.variables.begin(), result.variables.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  result.findings = named_by(*find_rule_by_code("EV001"), unread_variables(set));
  return result;
}

void add_findings(std::vector<Finding> findings, VariableJudgement& result) {
  result.findings.insert(result.findings.end(), std::make_move_iterator(findings.begin()),
                         std::make_move_iterator(findings.end()));
  std::stable_sort(result.findings.begin(), result.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
}

}  // namespace

std::string_view verdict_name(VariableVerdict verdict) {
  switch (verdict) {
    case VariableVerdict::kUnread:
      return "unread";
    case VariableVerdict::kMisspelled:
      return "misspelled";
    case VariableVerdict::kContradicting:
      return "contradicting";
    case VariableVerdict::kTooLate:
      return "too late";
    default:
      return "read";
  }
}

VariableJudgement judge_each_variable(const EnvironmentCase& examined) {
  VariableJudgement result = judge_names(examined, examined.options.variables);
  const Rule* contradicting = find_rule_by_code("EV002");
  const std::vector<Finding> contradictions =
      named_by(*contradicting, contradicting->check_environment(examined));
  for (JudgedVariable& variable : result.variables) {
    if (std::any_of(contradictions.begin(), contradictions.end(),
                    [&](const Finding& finding) { return mentions(finding, variable.name); }))
      variable.verdict = VariableVerdict::kContradicting;
    if (variable.verdict != VariableVerdict::kUnread) add_all_notes(examined, variable);
  }
  add_findings(contradictions, result);
  return result;
}

void add_set_by_program(const EnvironmentCase& examined, const VariableMap& places,
                        std::vector<Finding> too_late, VariableJudgement& judgement) {
  VariableJudgement by_name = judge_names(examined, places);
  const auto find = [](VariableJudgement& in, const std::string& name) {
    return std::find_if(in.variables.begin(), in.variables.end(),
                        [&](const JudgedVariable& variable) { return variable.name == name; });
  };
  for (const auto& [name, place] : places) {
    const bool is_late = std::any_of(too_late.begin(), too_late.end(), [&](const Finding& finding) {
      return mentions(finding, name);
    });
    const auto judged = find(by_name, name);
    if (judged == by_name.variables.end() && !is_late) continue;  // concerns no framework
    if (find(judgement, name) == judgement.variables.end())
      judgement.variables.push_back(judged == by_name.variables.end()
                                        ? JudgedVariable{name, VariableVerdict::kRead, "", {}}
                                        : std::move(*judged));
    const auto known = find(judgement, name);
    if (is_late) known->verdict = VariableVerdict::kTooLate;
    known->notes.insert(known->notes.begin(), "set in " + place);
  }
  std::sort(judgement.variables.begin(), judgement.variables.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  add_findings(std::move(by_name.findings), judgement);
  add_findings(std::move(too_late), judgement);
}

}  // namespace cohabit
