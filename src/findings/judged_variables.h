// Every variable that is set here and concerns a framework: who reads it, and what is to be said of
// it. Values are compared, and are never part of the answer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/variables.h"
#include "findings/environment.h"
#include "findings/finding.h"

namespace cohabit {

enum class VariableVerdict : uint8_t { kRead, kUnread, kMisspelled, kContradicting, kTooLate };
std::string_view verdict_name(VariableVerdict verdict);

struct JudgedVariable {
  std::string name;
  VariableVerdict verdict = VariableVerdict::kRead;
  std::string by;  // who reads it, or what was meant
  std::vector<std::string> notes;
};

struct VariableJudgement {
  std::vector<JudgedVariable> variables;  // by name
  std::vector<Finding> findings;          // of the rules about variables (EV)
};
VariableJudgement judge_each_variable(const EnvironmentCase& examined);

// Those that a program sets itself, by their names: what it sets them to is not known. `places`:
// where it does; `too_late`: what EV003 says of it.
void add_set_by_program(const EnvironmentCase& examined, const VariableMap& places,
                        std::vector<Finding> too_late, VariableJudgement& judgement);

}  // namespace cohabit
