// cohabit doctor: gather facts; simulate; judge; report.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/say.h"
#include "base/variables.h"
#include "base/write_file.h"
#include "cli/arguments.h"
#include "cli/bundle.h"
#include "cli/commands.h"
#include "cli/configuration.h"
#include "cli/doctor_options.h"
#include "cli/examination.h"
#include "cli/examine.h"
#include "cli/gpu_options.h"
#include "cli/report_options.h"
#include "findings/rule.h"
#include "report/printable.h"
#include "report/report.h"

namespace cohabit {
namespace {

constexpr const char* kSummary = "summary";  // of bare `cohabit`

Result<Configuration> configure(const DoctorOptions& options) {
  Configuration result;
  if (!options.no_configuration) {
    auto found = read_configuration(options.configuration, options.configuration_named);
    if (!found) return found;
    result = std::move(*found);
  }
  if (!options.baseline.empty()) {
    auto known = read_baseline(options.baseline);
    if (!known) return tl::unexpected<Error>(known.error());
    result.policy.baseline = std::move(*known);
  }
  if (!options.fail_on.empty()) result.fail_on = options.fail_on;
  if (result.fail_on.empty()) result.fail_on = "error";
  return result;
}

// All findings that count, and those that are known already; then none of them is new.
Result<void> write_baseline(const std::string& file, report::Report& report) {
  std::vector<const Finding*> findings;
  for (const Finding& finding : report.findings) findings.push_back(&finding);
  for (const Suppressed& one : report.suppressed)
    if (one.by == SuppressedBy::kBaseline) findings.push_back(&one.finding);
  if (auto done = write_file(file, format_baseline(findings, report.environment)); !done)
    return done;
  say("{} finding{} written to {}\n", findings.size(), findings.size() == 1 ? "" : "s", file);
  return {};
}

std::string draw(const DoctorOptions& options, const report::Report& report) {
  if (options.format == "json") return report::json(report);
  if (options.format == "concise") return report::concise(report);
  if (options.format == "sarif") return report::sarif(report);
  if (options.format == "github") return report::github(report);
  const bool colour = options.output.empty() && wants_colour();
  return options.format == kSummary ? report::summary(report, colour)
                                    : report::full(report, colour);
}

Result<int> doctor(DoctorOptions options) {
  std::optional<Bundle> bundle;  // outlives what is read in it
  if (is_bundle(options.words[0])) {
    bundle.emplace(options.words[0]);
    if (auto done = bundle->open(options); !done) return tl::unexpected<Error>(done.error());
  }
  const auto configuration = configure(options);
  if (!configuration) return tl::unexpected<Error>(configuration.error());
  KnownWords words;
  Tree tree(options.root);
  if (auto good = tree.check_root(); !good) return tl::unexpected<Error>(good.error());
  if (bundle) bundle->prepare(tree);
  // Of another file tree nothing is kept.
  options.cache = options.cache && options.root.empty() && !bundle;
  if (options.cache) tree.set_words(&words);
  auto report = examine(options, tree);
  if (!report)
    return tl::unexpected<Error>(bundle ? bundle->explained(report.error()) : report.error());
  if (bundle) bundle->add_gaps(*report);
  report->suppressed = apply_policy(configuration->policy, report->environment, report->findings);
  // Reasons are the user's own words.
  *report = report::without_secrets(std::move(*report), options.surroundings
                                                            ? options.surroundings->variables
                                                            : own_variables(options.root));
  number_findings(*report);
  if (!options.write_baseline.empty())
    if (auto done = write_baseline(options.write_baseline, *report); !done)
      return tl::unexpected<Error>(done.error());
  const std::string text = draw(options, *report);
  if (auto done = options.output.empty() ? print_report(text) : write_file(options.output, text);
      !done)
    return tl::unexpected<Error>(done.error());
  return options.write_baseline.empty() && reaches(report->findings, configuration->fail_on) ? 1
                                                                                             : 0;
}

Result<int> check_and_run(const DoctorOptions& options) {
  if (auto good = check_report_options(options.format, options.fail_on); !good)
    return tl::unexpected<Error>(good.error());
  return doctor(options);
}

}  // namespace

void add_subject_options(CLI::App& command, DoctorOptions& options) {
  command
      .add_option("environment", options.words[0],
                  "A venv, conda or other prefix, or its interpreter (default: $VIRTUAL_ENV, "
                  ".venv here, $CONDA_PREFIX, python in PATH)")
      ->check(refuse_empty);
  command.add_option("program", options.words[1],
                     "A file that ends in .py or .ipynb; default: the frameworks");
  command.add_option("arguments", options.arguments, "-- and the arguments of the program");
  command.add_option("-m", options.module, "Examine `python -m MODULE`, from this directory")
      ->check(refuse_empty);
  command
      .add_option("--imports", options.imports,
                  "What is imported, in order: a,b (default: the frameworks that are there, each "
                  "alone and every pair in both orders)")
      ->check(refuse_empty_list);
  command.add_flag("--assume-gpu", options.assume_gpu,
                   "As if a GPU and its driver were there: what is opened when a device is set up "
                   "and first used is examined too (also with --driver and --sm)");
  command.add_flag("--verify-hashes", options.verify_hashes,
                   "Compare the content of installed files with their RECORD, not only the size "
                   "(files of up to 64 MiB; reads them all)");
}

void add_doctor_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<DoctorOptions>();
  options->cache = true;
  CLI::App* command = app.add_subcommand(
      "doctor", "Say what clashes in an environment, why, and what to do about it");
  command->footer("Exit code: 0 nothing at or above --fail-on, 1 findings, 2 Cohabit failed.");
  add_subject_options(*command, *options);
  command->add_flag("--trace", options->trace,
                    "Run the imports or the program in a child process and record them, instead "
                    "of working out from the files what they open");
  command->add_option("--replay", options->replay, "Use this trace of `cohabit trace` instead");
  command->add_option("--root", options->root, "Read files below this directory");
  command->add_option("--format", options->format, "full, concise, json, sarif or github")
      ->capture_default_str();
  command->add_option("--fail-on", options->fail_on,
                      "error (default), warning, note or never: when the exit code is 1");
  command->add_option("--config", options->configuration,
                      "Read this configuration (default: the nearest cohabit.toml, or "
                      "pyproject.toml with [tool.cohabit], from here upward)");
  command->add_flag("--no-config", options->no_configuration, "Read no configuration");
  command->add_option("--baseline", options->baseline, "Do not count the findings in this file");
  command->add_option("--write-baseline", options->write_baseline,
                      "Write the findings of today to this file; the exit code is 0");
  add_gpu_options(*command, options->host);
  command->add_option("--plan", options->plan, "Write what the imports would open (JSON)");
  command->add_option("--loads", options->loads, "Write what is loaded, as a table");
  command->add_option("--bindings", options->bindings, "Write every symbol binding, as a table");
  command->add_flag("--no-cache{false}", options->cache,
                    "Work out anew what imports open and what files hold, and keep nothing for the "
                    "next run (also COHABIT_NO_CACHE=1)");
  command->add_option("--output", options->output, "Write the report to this file");
  command->callback([options, &exit_code] { exit_code = exit_code_of(check_and_run(*options)); });
}

int summarize() {
  DoctorOptions options;
  options.format = kSummary;
  options.cache = true;
  return exit_code_of(doctor(options));
}

}  // namespace cohabit
