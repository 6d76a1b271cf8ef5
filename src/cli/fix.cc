// cohabit fix: plan the orders, search the smallest change whose simulation is clean, report.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "actions/verify.h"
#include "base/say.h"
#include "base/variables.h"
#include "base/write_file.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/examine.h"
#include "cli/program.h"
#include "cli/repairs.h"

namespace cohabit {
namespace {

struct FixOptions : TargetWords {
  std::string imports, with, replay, root, write;
  std::string format = "full";
  bool verify = false;
  bool cache = true;
};

// What is to be run to prove a repair: in which orders, or which modules each in a process of its
// own.
std::vector<std::vector<std::string>> runs_of(const report::RepairReport& report,
                                              const Repair& repair) {
  std::vector<std::vector<std::string>> runs;
  if (!repair.package.empty()) return runs;  // nothing has been changed yet
  if (!repair.order.empty()) return {repair.order};
  for (const std::string& module : repair.processes) runs.push_back({module});
  if (!runs.empty()) return runs;
  for (const report::Order& order : report.orders) runs.push_back(order.imports);
  return runs;
}

// Runs what the best repair is for, repaired.
Result<void> prove(report::RepairReport& report) {
  if (report.repairs.empty()) return {};
  report::RepairRow& row = report.repairs.front();
  const auto runs = runs_of(report, row.repair);
  if (runs.empty()) return {};
  const auto variables = own_variables("");
  const auto changes = launch_variables(row.repair, {variables.begin(), variables.end()});
  if (!changes) return tl::unexpected<Error>(changes.error());
  for (const auto& imports : runs) {
    say("verifying: import {}\n", fmt::join(imports, ", "));
    const auto run = verify_imports(report.program, imports, *changes, {});
    if (!run) return tl::unexpected<Error>(run.error());
    if (run->outcome == Outcome::kOk) continue;
    row.verified = false;
    row.verification = fmt::format("import {}: {}: {}", fmt::join(imports, ", "),
                                   outcome_name(run->outcome), run->detail);
    return {};
  }
  row.verified = true;
  return {};
}

// 0: sound, or sound when it is launched with the first repair; 1: something is left, or is a
// change of packages or of the machine, or a run did not confirm it.
int exit_code_of(const report::RepairReport& report) {
  if (!report.repairs.empty() && report.repairs.front().verified == false) return 1;
  std::vector<std::string> left;
  for (size_t i = 0; i < report.findings.size(); i++) {
    if (report.findings[i].severity != Severity::kError) continue;
    if (report.finding_classes[i] != repair_class_name(RepairClass::kLaunch)) return 1;
    left.push_back(report.findings[i].id);
  }
  if (!report.repairs.empty())
    for (const std::string& id : report.repairs.front().clears) std::erase(left, id);
  return left.empty() ? 0 : 1;
}

Result<RepairRequest> read_request(const FixOptions& options) {
  if (options.format != "full" && options.format != "json")
    return fail("--format cannot be " + options.format + "; it is one of full, json");
  auto imports = read_module_list(options.imports);
  if (!imports) return tl::unexpected<Error>(imports.error());
  auto with = read_module_list(options.with);
  if (!with) return tl::unexpected<Error>(with.error());
  if (!imports->empty() && !with->empty())
    return fail("--imports is one order and --with any order: give one of them");
  if (options.verify && !(options.root.empty() && options.replay.empty()))
    return fail("--verify runs the environment that is here: it goes with no --root or --replay");
  const Tree tree(options.root);
  auto target = read_target(tree, options, PythonVariables::from_environment(), own_variables(""));
  if (!target) return tl::unexpected<Error>(target.error());
  RepairRequest request;
  if (const auto& program = target->program) {
    if (!(imports->empty() && with->empty() && options.replay.empty()))
      return fail(
          "a program says itself what it imports: leave --imports, --with and --replay out");
    if (options.verify)
      return fail(
          "--verify runs imports: give --imports a,b, or start the program by `cohabit run`");
    request.program = request_of(*program, {});
    request.title = program->title;
  }
  request.environment = std::move(target->environment);
  request.root = options.root;
  request.replay = options.replay;
  request.imports = *imports;
  request.with = *with;
  request.cache = options.cache;
  return request;
}

Result<int> fix(const FixOptions& options) {
  const auto request = read_request(options);
  if (!request) return tl::unexpected<Error>(request.error());
  auto report = find_repairs(*request);
  if (!report) return tl::unexpected<Error>(report.error());
  if (!report->findings.empty() && report->findings.front().severity != Severity::kError)
    say("note: nothing that was looked at fails; this is for what is imported or called besides\n");
  if (request->program)
    if (const std::string more = report::more_imports(*report); !more.empty())
      report->unknowns.push_back(more + "; `cohabit run` looks at every order of them too");
  const bool is_bare = request->imports.empty() && request->with.empty() &&
                       request->replay.empty() && !request->program;
  // "Nothing to repair" would be said of what was not looked at.
  if (is_bare && report->orders.empty()) return fail(no_framework_in(report->environment));
  if (is_bare && report->findings.empty())
    say("note: the frameworks and the packages that were asked for by name were looked at; what a "
        "program imports besides can clash with them: --imports a,b, a program, or `cohabit "
        "run`\n");
  if (options.verify)
    if (auto done = prove(*report); !done) return tl::unexpected<Error>(done.error());
  const std::string text =
      options.format == "json" ? report::json(*report) : report::full(*report, wants_colour());
  if (auto done = print_report(text); !done) return tl::unexpected<Error>(done.error());
  if (!options.write.empty()) {
    const bool any = !report->repairs.empty() && report->repairs.front().repair.launches();
    const Repair none;
    if (auto done = write_file(options.write,
                               format_rules(any ? report->repairs.front().repair : none, '\n'));
        !done)
      return tl::unexpected<Error>(done.error());
  }
  return exit_code_of(*report);
}

}  // namespace

void add_fix_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<FixOptions>();
  CLI::App* command = app.add_subcommand(
      "fix", "Search the smallest change to how a process is started that clears its clashes");
  command->footer(
      "Exit code: 0 nothing to repair, or the first repair clears all; 1 something is left, or a "
      "run\n"
      "of --verify does not confirm it; 2 Cohabit failed. `cohabit run` starts a program with the "
      "repair.");
  command
      ->add_option("environment", options->words[0],
                   "A venv, conda or other prefix, or its interpreter (default: the active one)")
      ->check(refuse_empty);
  command->add_option("program", options->words[1],
                      "Repair what this file imports, which ends in .py or .ipynb");
  command->add_option("arguments", options->arguments, "-- and the arguments of the program");
  command->add_option("-m", options->module, "Repair what `python -m MODULE` imports")
      ->check(refuse_empty);
  command->add_option("--imports", options->imports, "Repair this order: a,b")
      ->check(refuse_empty_list);
  command
      ->add_option("--with", options->with,
                   "Repair every order of these: a,b (default: the frameworks that are there)")
      ->check(refuse_empty_list);
  command->add_option("--replay", options->replay, "Use this trace of `cohabit trace` instead");
  command->add_option("--root", options->root, "Read files below this directory");
  command->add_option("--format", options->format, "full or json")->capture_default_str();
  command->add_flag("--verify", options->verify,
                    "Run what the first repair is for in child processes, repaired");
  command->add_flag("--no-cache{false}", options->cache,
                    "Work out anew what imports open and what files hold, and keep nothing");
  command->add_option("--write", options->write,
                      "Write the first repair to this file, for `cohabit run --repair FILE`");
  command->callback([options, &exit_code] { exit_code = exit_code_of(fix(*options)); });
}

}  // namespace cohabit
