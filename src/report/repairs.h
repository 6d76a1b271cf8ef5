// The report of `cohabit fix`: the errors of an environment and what would clear them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "findings/finding.h"
#include "repair/effects.h"
#include "repair/repair.h"
#include "report/report.h"

namespace cohabit::report {

struct RepairRow {
  Repair repair;
  bool every_order = false;
  std::vector<std::string> clears, leaves;  // ids of findings
  std::optional<bool> verified;             // by a real run; nothing: there was none
  std::string verification;                 // which run did not confirm it, and how it ended
  Effects effects;
};

struct RepairReport {
  std::string environment;  // its path
  std::string python;       // version
  std::string program;      // the interpreter
  std::string title;        // what is run where there are no imports to name
  std::vector<Order> orders;
  std::vector<Finding> findings;             // errors; where there is none, latent splits
  std::vector<std::string> finding_classes;  // launch, package, machine; as findings
  std::vector<RepairRow> repairs;            // best first
  std::vector<std::string> unknowns;
  std::string unpaired;  // that of them which says what was looked at alone
  size_t simulations = 0;
  // Of the order asked for, when it is one: how its plan ended, and whether it meets a framework.
  std::string failure;
  bool meets_framework = false;
  // Of a program: what its own code may import besides (cli/examine.h, LaterImports).
  std::vector<std::string> later_imports, named_imports;
  bool imports_are_open = false, gives_environment = false;
};

// "the program may import paddle, cupy later"; empty: its code names and makes no other imports.
std::string more_imports(const RepairReport& report);
std::string full(const RepairReport& report, bool colour);
// data/schema/fix.schema.json describes it.
std::string json(const RepairReport& report);

}  // namespace cohabit::report
