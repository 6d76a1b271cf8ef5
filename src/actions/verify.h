// A real run: imports and a small computation of each, in a child process with limits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actions/crash_report.h"
#include "actions/launch.h"
#include "base/result.h"

namespace cohabit {

enum class Outcome : uint8_t { kOk, kException, kSignal, kHang, kWrongResult };
std::string_view outcome_name(Outcome outcome);

struct VerifyLimits {
  double seconds = 600;
  uint64_t megabytes = 0;  // of private memory; 0: no limit
};

struct VerifiedRun {
  Outcome outcome = Outcome::kOk;
  std::string detail;  // what went wrong, and during what
  double seconds = 0;
  std::vector<std::pair<std::string, std::string>> versions;  // by module, as it says itself
  std::vector<NativeFrame> frames;                            // where a signal has ended it
};

// `python`: the interpreter. `changes`: of a repair, for the child alone. An error means that the
// child could not be run. Several threads may call it at the same time.
Result<VerifiedRun> verify_imports(const std::string& python,
                                   const std::vector<std::string>& imports,
                                   const std::vector<VariableChange>& changes,
                                   const VerifyLimits& limits);

// What the child runs: imports its arguments in order, then computes with those that it knows.
extern const char* const kVerifyProgram;

}  // namespace cohabit
