// cohabit explain CODE: a rule in the words of its file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "findings/rule.h"

namespace cohabit {
namespace {

int explain(const std::string& code) {
  if (const Rule* rule = find_rule_by_code(code)) {
    fmt::print("{}", explain_rule(*rule));
    return 0;
  }
  std::vector<std::string> known;
  for (const Rule* rule : all_rules()) {
    known.emplace_back(rule->code);
    known.emplace_back(rule->slug);
  }
  const auto near = nearest_name(code, known);
  fmt::print(stderr, "cohabit: there is no rule {}{}; `cohabit rules` lists them all\n", code,
             near ? fmt::format(" (did you mean {}?)", *near) : "");
  return 2;
}

}  // namespace

void add_explain_command(CLI::App& app, int& exit_code) {
  auto code = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("explain", "Explain a code of a report");
  command->add_option("code", *code, "Code or short name of a rule, e.g. CB101")->required();
  command->callback([code, &exit_code] { exit_code = explain(*code); });
}

}  // namespace cohabit
