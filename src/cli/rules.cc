// cohabit rules: every rule, one line each.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "findings/rule.h"

namespace cohabit {

void add_rules_command(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("rules", "List what Cohabit looks for, by code");
  command->callback([&exit_code] {
    for (const Rule* rule : all_rules())
      fmt::print("{}  {:<8} {:<26} {}\n", rule->code, severity_name(rule->severity), rule->slug,
                 rule->summary);
    exit_code = 0;
  });
}

}  // namespace cohabit
