// One order of `cohabit verify`: what happened beside what was predicted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "actions/verify.h"
#include "cli/examine.h"
#include "report/report.h"

namespace cohabit {

// An error that is predicted for this order.
struct PredictedError {
  std::string code, headline;
  std::vector<std::string> libraries;  // paths
  std::vector<std::string> broken;     // files that it finds broken
  bool is_latent = false;  // no error of the imports: what is called behind them steps into it
  // The crash or exception: one of these is in its frames, or it is that one.
  bool explains = false;
};

struct VerifiedRow {
  std::vector<std::string> imports;
  VerifiedRun run;
  std::string predicted = "unknown";  // sound, unsound, unknown
  std::vector<PredictedError> errors;
  bool cached = false;  // an earlier run of the same; there was none now
  // A clash that is predicted need not show in one run of a small computation; a crash that is not
  // predicted is a wrong prediction.
  bool agrees() const { return (predicted == "unsound") == (run.outcome != Outcome::kOk); }
};

// Behind the name of a script, in place of a module: it is run with that option.
inline constexpr std::string_view kHelp = " --help";
bool is_script(const std::string& module);
// "import torch, tensorflow", "black --help"
std::string statement_of(const std::vector<std::string>& imports);

// What the files say of its order. `about`: the findings about the environment, with ids.
void predict(World& world, const Repair& repair, const report::Report& about, VerifiedRow& row);
// Which of the predicted errors are about libraries that the crash was in, about files that the
// exception went through, or are the exception itself.
void find_explanation(VerifiedRow& row);

std::string full_text(const std::vector<VerifiedRow>& rows);
// data/schema/verify.schema.json describes it.
std::string json_text(const World& world, const std::vector<VerifiedRow>& rows);

}  // namespace cohabit
