// A report: everything `cohabit doctor` found out about one environment, and its ways onto paper.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "facts/cuda/gpu_host.h"
#include "findings/finding.h"
#include "findings/policy.h"
#include "imports/plan.h"

namespace cohabit::report {

inline constexpr const char* kAtImport = "import";  // Order::phase

struct Order {
  std::vector<std::string> imports;
  std::string program;  // "python app.py", which imports these; empty: they are all
  std::string verdict;  // sound, unsound, unknown
  std::string phase;    // of the first error: "import", "device initialisation", ...; empty: none
  std::vector<std::string> findings;  // ids
  std::string ended;                  // how the real run ended, in words; empty: there was none
};

struct Report {
  std::string environment;  // its path
  std::string python;       // version
  std::string program;
  std::string directory;  // the current one; empty: of files alone there is none
  // Where services show what is about no file: the program's, else one of the environment itself.
  std::string own_file;
  std::string glibc;
  std::string architecture;
  std::optional<cuda::GpuHost> gpu;  // nothing: a recorded run, of any machine
  std::vector<Order> orders;
  std::vector<Finding> findings;
  std::vector<Suppressed> suppressed;  // not counted: ignored, or in the baseline
  std::vector<std::string> unknowns;
};

// For people. Without colour it reads as well.
std::string full(const Report& report, bool colour);
// One line for each finding: severity[code]: headline.
std::string concise(const Report& report);
// What bare `cohabit` prints: the verdicts, counts, and one next command.
std::string summary(const Report& report, bool colour);
// SARIF 2.1.0, for services that show and track alerts.
std::string sarif(const Report& report);
// Workflow commands: annotations of GitHub Actions.
std::string github(const Report& report);
// data/schema/doctor.schema.json describes it.
std::string json(const Report& report);

// data/schema/plan.schema.json describes it.
std::string plan_json(const python::Plan& plan, const std::vector<std::string>& imports,
                      const std::map<std::string, std::string>& variables);

}  // namespace cohabit::report
