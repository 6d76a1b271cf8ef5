// cohabit why: read the text, or run a command and keep it; match; rank; look at the environment;
// report.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "actions/tee.h"
#include "actions/trace.h"
#include "base/say.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/examine.h"
#include "cli/recorded.h"
#include "explain/answer.h"
#include "explain/evidence.h"
#include "explain/log_text.h"
#include "facts/host/machine.h"
#include "facts/python/interpreter.h"
#include "facts/trace/recorded_machine.h"
#include "report/why.h"

namespace cohabit {
namespace {

struct WhyOptions {
  std::string log = "-";
  std::string format = "full";
  std::string environment;
  std::vector<std::string> command;
};

constexpr int kCannotRun = 125;

std::string draw(const WhyOptions& options, const explain::Explanation& explanation, int stream) {
  if (options.format == "json") return report::why_json(explanation);
  const char* no_colour = std::getenv("NO_COLOR");
  return report::why_full(explanation, isatty(stream) && !(no_colour && *no_colour));
}

// What this machine says: with --env, or the environment of the command that was run.
Result<void> add_evidence(explain::Explanation& explanation, const std::string& environment) {
  const Tree tree("");
  const auto python = find_interpreter(tree, environment);
  if (!python) return tl::unexpected<Error>(python.error());
  const Distributions distributions = Distributions::read(tree, *python);
  const EnvironmentCase examined(tree, *python, distributions);
  explain::look_at_environment(
      explanation, examined, read_machine(tree, python->elf_machine, "", python->elf_interpreter));
  return {};
}

// What the loader did in it, as `cohabit doctor --replay` judges it.
std::vector<Finding> judge_run(const Trace& trace) {
  const Tree tree("");
  World world(tree);
  (void)find_environment(world, trace.start.program);
  world.machine = recorded_machine(tree, trace.start);
  Sequence sequence;
  sequence.imports = imports_of_command(trace.start.arguments);
  sequence.program = title_of_command(trace.start.arguments);
  sequence.trace = trace;
  report::Report report;
  if (!examine_sequence(world, sequence, report)) return {};
  return std::move(report.findings);
}

explain::Explanation explain_log(const explain::LogText& log) {
  // Never freed: to take the expressions apart takes as long as a quarter of a short run.
  static const auto& matcher = *new explain::Matcher();
  return explain::explain_text(log.text(), matcher);
}

Result<int> why_of_log(const WhyOptions& options) {
  const auto log = explain::LogText::read(options.log);
  if (!log) return tl::unexpected<Error>(log.error());
  explain::Explanation explanation = explain_log(*log);
  if (!options.environment.empty())
    if (auto done = add_evidence(explanation, options.environment); !done)
      return tl::unexpected<Error>(done.error());
  fmt::print("{}", draw(options, explanation, STDOUT_FILENO));
  return explanation.answers.empty() ? 0 : 1;
}

// Standard output is the command's: the explanation goes to standard error.
Result<int> why_of_command(const WhyOptions& options) {
  auto tee = Tee::make();
  if (!tee) return tl::unexpected<Error>(tee.error());
  RecordOptions record;
  record.forward_signals = true;
  record.standard_output = tee->standard_output();
  record.standard_error = tee->standard_error();
  tee->start();
  const auto trace = record_trace(record, options.command);
  KeptOutput kept = tee->finish();
  if (!trace) return tl::unexpected<Error>(trace.error());
  const int status = trace->exit_status ? *trace->exit_status : 0;
  // Who stops to read (`| head`) asks for no explanation.
  if (status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE))
    return exit_code_of_process(status);
  // The shell's word for it, which no one has written here.
  if (WIFSIGNALED(status)) kept.text += std::string("\n") + ::strsignal(WTERMSIG(status)) + "\n";
  explain::Explanation explanation = explain_log(explain::LogText(std::move(kept.text)));
  explain::count_missing_lines(explanation, kept.lines_before_gap, kept.lines_left_out);
  // Who interrupts a command that has told of no failure knows why it ended.
  const bool is_interrupted = WIFSIGNALED(status) && WTERMSIG(status) == SIGINT;
  if (is_interrupted && explanation.answers.empty()) return exit_code_of_process(status);
  // A program that is no Python has no environment.
  (void)add_evidence(explanation,
                     options.environment.empty() ? trace->start.program : options.environment);
  if (!explanation.answers.empty()) explain::look_at_run(explanation, judge_run(*trace));
  say("\n{}", draw(options, explanation, STDERR_FILENO));
  return exit_code_of_process(status);
}

Result<int> why(const WhyOptions& options) {
  if (options.format != "full" && options.format != "json")
    return fail(fmt::format("--format cannot be {}; it is full or json", options.format));
  if (options.log != "-" && !options.command.empty())
    return fail("give a file or a command, not both");
  return options.command.empty() ? why_of_log(options) : why_of_command(options);
}

}  // namespace

void add_why_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<WhyOptions>();
  CLI::App* command = app.add_subcommand(
      "why", "Explain an error text: what happened, what this machine says to it, what to do");
  command->footer(
      "cohabit why -- COMMAND runs it, shows its output as it comes, and explains a failure.\n"
      "Exit code: 0 nothing known in the text, 1 answers, 2 Cohabit failed; of a command: its own\n"
      "(128 + n when signal n ended it), 125 when it could not be run.");
  command->add_option("log", options->log, "A file, or - for standard input")
      ->capture_default_str();
  command->add_option("--format", options->format, "full or json")->capture_default_str();
  command->add_option("--env", options->environment,
                      "The environment to look at (a prefix or an interpreter)");
  command->add_option("command", options->command, "-- and a command with its arguments");
  command->callback([options, &exit_code] {
    const auto code = why(*options);
    if (code) {
      exit_code = *code;
      return;
    }
    say("cohabit: {}\n", code.error().message);
    exit_code = options->command.empty() ? 2 : kCannotRun;
  });
}

}  // namespace cohabit
