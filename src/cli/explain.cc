// cohabit explain CODE or SLUG: a rule, or a mechanism of `cohabit why`, in the words of its file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/say.h"
#include "cli/commands.h"
#include "explain/knowledge.h"
#include "findings/rule.h"
#include "report/why.h"

namespace cohabit {
namespace {

// A slug that a rule and a mechanism share (numpy-abi) is both.
int explain_name(const std::string& name) {
  std::vector<std::string> known;
  bool found = false;
  for (const Rule* rule : all_rules()) {
    known.emplace_back(rule->code);
    known.emplace_back(rule->slug);
  }
  if (const Rule* rule = find_rule_by_code(name)) {
    fmt::print("{}", explain_rule(*rule));
    found = true;
  }
  for (const explain::Mechanism& mechanism : explain::known_mechanisms()) {
    known.emplace_back(mechanism.slug);
    if (mechanism.slug != name) continue;
    fmt::print("{}{}", found ? "\n" : "", report::mechanism_text(mechanism));
    found = true;
  }
  if (found) return 0;
  const auto near = nearest_name(name, known);
  say("cohabit: there is no rule or mechanism {}{}; `cohabit rules` lists the rules\n", name,
      near ? fmt::format(" (did you mean {}?)", *near) : "");
  return 2;
}

}  // namespace

void add_explain_command(CLI::App& app, int& exit_code) {
  auto code = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("explain", "Explain a code of a report, or a mechanism");
  command
      ->add_option("code", *code,
                   "Code or short name of a rule (CB101), or of a mechanism (openmp-duplicate)")
      ->required();
  command->callback([code, &exit_code] { exit_code = explain_name(*code); });
}

}  // namespace cohabit
