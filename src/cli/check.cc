// cohabit check: ask the installer; read the wheels' lists; compare; judge; report.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "actions/check/check.h"
#include "actions/check/inputs.h"
#include "base/say.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/configuration.h"
#include "cli/deep_check.h"
#include "cli/examine.h"
#include "cli/place_options.h"
#include "cli/report_options.h"
#include "cli/worse.h"
#include "report/check.h"

namespace cohabit {
namespace {

struct CheckOptions {
  std::vector<std::string> requirements, editables, files, constraints;
  PlaceOptions places;
  bool pre = false, upgrade = false, no_dependencies = false;
  bool allow_build = false, deep = false;
  std::string environment;
  std::string format = "full", fail_on;
  bool no_configuration = false;
};

// As pip and uv spell it; what of the files is not looked at goes to `unknowns`.
Result<std::vector<std::string>> arguments_of(const CheckOptions& options, check::Tool tool,
                                              const Interpreter& python,
                                              std::vector<std::string>& unknowns) {
  std::vector<std::string> words;
  bool is_lock = false;
  for (const std::string& file : options.files) {
    auto input = check::read_input(file, tool, MarkerEnvironment::of(python));
    if (!input) return tl::unexpected<Error>(input.error());
    words.insert(words.end(), input->words.begin(), input->words.end());
    unknowns.insert(unknowns.end(), input->unknowns.begin(), input->unknowns.end());
    is_lock = is_lock || input->is_lock;
  }
  for (const std::string& file : options.constraints) words.insert(words.end(), {"-c", file});
  const std::vector<std::string> places = words_of(options.places, tool);
  words.insert(words.end(), places.begin(), places.end());
  if (options.pre) words.emplace_back("--pre");
  if (options.upgrade) words.emplace_back("--upgrade");
  if (options.no_dependencies || is_lock) words.emplace_back("--no-deps");
  for (const std::string& place : options.editables) words.insert(words.end(), {"-e", place});
  words.insert(words.end(), options.requirements.begin(), options.requirements.end());
  return words;
}

report::Check report_of(const World& world, check::Outcome outcome) {
  report::Check check;
  check.report.environment = world.python->prefix;
  check.report.own_file = file_of_environment(world);
  check.report.directory = world.tree.current_directory();
  check.report.python = world.python->version;
  check.report.findings = std::move(outcome.findings);
  check.report.unknowns = std::move(outcome.unknowns);
  check.installer = outcome.installer.tool == check::Tool::kPip ? "pip" : "uv";
  check.changes = std::move(outcome.changes);
  check.overwrites = std::move(outcome.overwrites);
  check.claimed_twice = outcome.claimed_twice;
  check.different = outcome.different;
  check.bytes_fetched = outcome.bytes_fetched;
  check.bytes_of_wheels = outcome.bytes_of_wheels;
  return report::without_secrets(std::move(check), own_variables(""));
}

std::string draw(const CheckOptions& options, const report::Check& check) {
  if (options.format == "json") return report::json(check);
  if (options.format == "concise") return report::concise(check);
  if (options.format == "sarif") return report::sarif(check.report);
  if (options.format == "github") return report::github(check.report);
  return report::full(check, wants_colour());
}

Result<int> run_check(const CheckOptions& options) {
  if (auto good = check_report_options(options.format, options.fail_on); !good)
    return tl::unexpected<Error>(good.error());
  if (options.requirements.empty() && options.files.empty() && options.editables.empty())
    return fail("say what would be installed: a requirement (torch==2.15.0) or -r FILE");
  Configuration configuration;
  if (!options.no_configuration) {
    auto found = read_configuration("");
    if (!found) return tl::unexpected<Error>(found.error());
    configuration = std::move(*found);
  }
  const std::string level = options.fail_on.empty() ? configuration.fail_on : options.fail_on;
  const Tree tree("");
  World world(tree);
  if (auto found = choose_whole_environment(world, options.environment); !found)
    return tl::unexpected<Error>(found.error());
  auto installer = check::find_answering(*world.python, world.distributions);
  if (!installer) return tl::unexpected<Error>(installer.error());
  if (const auto cost = check::cost_of_asking(*installer, world.distributions); !cost.empty())
    say("{}\n", cost);
  std::vector<std::string> unknowns;
  auto arguments = arguments_of(options, installer->tool, *world.python, unknowns);
  if (!arguments) return tl::unexpected<Error>(arguments.error());
  const check::Request request{std::move(*arguments), options.allow_build};
  auto outcome = check::check_install(*installer, *world.python, world.distributions, request);
  if (!outcome) return tl::unexpected<Error>(outcome.error());
  outcome->unknowns.insert(outcome->unknowns.begin(), unknowns.begin(), unknowns.end());
  if (options.deep)
    if (auto done = look_deeper(*installer, *world.python, request, *outcome); !done)
      return tl::unexpected<Error>(done.error());
  const std::string unread = outcome->unread;
  report::Check check = report_of(world, std::move(*outcome));
  check.report.suppressed =
      apply_policy(configuration.policy, check.report.environment, check.report.findings);
  number_findings(check.report);
  check.is_deep = options.deep;
  if (auto done = print_report(draw(options, check)); !done)
    return tl::unexpected<Error>(done.error());
  // By default what guard refuses.
  const bool is_refused =
      level.empty() ? !refusal_of(check.report.findings, check.changes, world.distributions).empty()
                    : reaches(check.report.findings, level);
  if (is_refused) return 1;
  if (!unread.empty()) return fail(unread);
  return 0;
}

}  // namespace

void add_check_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command = app.add_subcommand(
      "check", "Say what an install would change, overwrite and break; nothing is installed");
  command->footer(
      "Example: cohabit check 'tensorflow[and-cuda]' --env .venv\n"
      "The environment's own installer resolves (pip, else uv), with its own configuration; of "
      "wheels "
      "on\nservers only their lists of files are read.\n"
      "Exit code: 0 guard would let it through, 1 it would not (or findings at or above "
      "--fail-on),\n"
      "2 Cohabit failed.");
  command->add_option("requirements", options->requirements, "As for pip: 'torch>=2', a wheel");
  command->add_option("-r,--requirement", options->files,
                      "A requirements file, or what else the installer reads");
  command->add_option("-e,--editable", options->editables,
                      "A project's directory, as `pip install -e` takes it");
  command->add_option("-c,--constraint", options->constraints, "A file of constraints");
  command->add_option(
      "--env", options->environment,
      "The environment (default: $VIRTUAL_ENV, .venv here, $CONDA_PREFIX, python in PATH)");
  add_place_options(*command, options->places);
  command->add_flag("--pre", options->pre, "Pre-releases too");
  command->add_flag("-U,--upgrade", options->upgrade, "Upgrade what is asked for");
  command->add_flag("--no-deps", options->no_dependencies, "Without what the requirements require");
  command->add_flag("--allow-build", options->allow_build,
                    "Let the installer build source distributions, which runs their code");
  command->add_flag("--deep", options->deep,
                    "Download the wheels, install them into a copy beside the environment, and say "
                    "what doctor finds there that it does not find today");
  command->add_option("--format", options->format, "full, concise, json, sarif or github")
      ->capture_default_str();
  command->add_option(
      "--fail-on", options->fail_on,
      "error, warning, note or never: when the exit code is 1 (default: where guard would "
      "refuse: errors, and warnings that break what is there)");
  command->add_flag("--no-config", options->no_configuration, "Read no configuration");
  command->callback([options, &exit_code] { exit_code = exit_code_of(run_check(*options)); });
}

}  // namespace cohabit
