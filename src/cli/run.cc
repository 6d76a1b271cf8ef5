// cohabit run: which Python, which imports, which repair; then become the command.
#include <fmt/format.h>
#include <unistd.h>

#include <sys/stat.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "actions/launch.h"
#include "base/paths.h"
#include "base/say.h"
#include "base/secrets.h"
#include "base/tree.h"
#include "base/write_file.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/python_command.h"
#include "cli/repairs.h"
#include "cli/rules_file.h"
#include "cli/run_options.h"
#include "facts/python/interpreter.h"
#include "findings/environment.h"
#include "report/printable.h"

namespace cohabit {
namespace {

// As env and timeout do it: these leave the command's own exit codes alone.
constexpr int kCannotRun = 125;
constexpr int kCannotExecute = 126;
constexpr int kNotFound = 127;

bool is_sound(const report::RepairReport& report) {
  return std::all_of(report.orders.begin(), report.orders.end(),
                     [](const auto& order) { return order.verdict == "sound"; });
}

// The best repair that changes nothing but the start; nothing where all is sound.
Repair choose(const RunOptions& options, const report::RepairReport& report,
              const std::string& what) {
  if (is_sound(report) && report.findings.empty()) {
    say(options, "{}: nothing to repair", what);
    return {};
  }
  for (const report::RepairRow& row : report.repairs) {
    if (!row.repair.launches() || row.clears.empty()) continue;
    say(options, "{}: {}{}", what, describe(row.repair),
        row.leaves.empty() ? "" : " (not everything can be cleared)");
    return row.repair;
  }
  const auto error =
      std::find_if(report.findings.begin(), report.findings.end(),
                   [](const Finding& finding) { return finding.severity == Severity::kError; });
  say(options, "{}: predicted, and no launch can clear it: {}; see `cohabit fix {}`", what,
      error == report.findings.end() ? "something fails" : report::printable(error->headline),
      shell_word(report.program));
  return {};
}

Result<Repair> repair_for_every_order(const RunOptions& options, RepairRequest request) {
  request.program.reset();
  const auto report = find_repairs(request);
  if (!report) return tl::unexpected<Error>(report.error());
  std::vector<std::string> modules;
  for (const report::Order& order : report->orders)
    if (order.imports.size() == 1) modules.push_back(order.imports[0]);
  if (!report->unpaired.empty()) say(options, "{}", report->unpaired);
  const std::string place = directory_of(directory_of(request.environment));
  return choose(options, *report,
                modules.size() < 2 ? fmt::format("every order of the modules of {}", place)
                                   : fmt::format("each two of {} of {}, in every order",
                                                 list_some(modules, modules.size()), place));
}

// What is asked for besides the program's imports as they go; empty: they are all.
std::string more_than_planned(const report::RepairReport& report, bool is_own) {
  if (!report.failure.empty())
    return "the program's imports cannot be worked out: " + report.failure;
  if (!is_own) return "the program is installed, and may run code that its arguments name";
  if (std::string more = report::more_imports(report); !more.empty()) return more;
  if (!report.meets_framework && is_sound(report))
    return "the program's own imports meet no framework";
  return "";
}

// Each order of what the program's code names, where that is told and little; else of all there is.
Result<Repair> repair_for_orders(const RunOptions& options, RepairRequest request,
                                 const report::RepairReport& report, bool is_own) {
  constexpr size_t kMostNamed = 5;
  const bool is_told =
      is_own && report.failure.empty() && !report.imports_are_open && !report.later_imports.empty();
  if (!is_told || report.named_imports.size() > kMostNamed)
    return repair_for_every_order(options, request);
  if (report.named_imports.empty()) return Repair{};
  request.program.reset();
  request.with = report.named_imports;
  const auto found = find_repairs(request);
  if (!found) return tl::unexpected<Error>(found.error());
  return choose(options, *found,
                fmt::format("every order of {}", fmt::join(report.named_imports, ", ")));
}

// A walk of the program tells enough if it comes to an end and meets a framework, or a clash, if it
// is a program of the user's own, and if its code names no other imports.
Result<Repair> repair_for_program(const RunOptions& options, const StartedPython& started,
                                  const RepairRequest& request) {
  if (!request.program) return repair_for_every_order(options, request);
  const auto report = find_repairs(request);
  if (!report) return tl::unexpected<Error>(report.error());
  const bool is_own = !runs_code_of_others(started, *request.program);
  const std::string more = more_than_planned(*report, is_own);
  if (more.empty()) return choose(options, *report, "the program's imports");
  say(options, "{}", more);
  auto repair = repair_for_orders(options, request, *report, is_own);
  if (!repair) return repair;
  if (!is_sound(*report))
    repair = combine(choose(options, *report, "the program's imports so far"), *repair);
  if (report->gives_environment && repair && !repair->empty())
    say(options,
        "what the program starts with variables of its own (env=) gets the repair only if "
        "LD_PRELOAD and COHABIT_PRELOAD_RULES are among them (os.environ holds them)");
  if (is_own) return repair;
  for (python::PlanRequest& named : programs_named_in(started, request.program->arguments)) {
    RepairRequest own = request;
    own.program = std::move(named);
    const auto found = find_repairs(own);
    if (!found) return tl::unexpected<Error>(found.error());
    if (is_sound(*found) && found->findings.empty()) continue;
    const std::string& file = own.program->code_file;
    repair = combine(choose(options, *found, file.empty() ? own.program->code : last_part(file)),
                     *repair);
  }
  return repair;
}

Result<Repair> automatic_repair(const RunOptions& options, const StartedPython& started) {
  auto imports = read_module_list(options.imports);
  if (!imports) return tl::unexpected<Error>(imports.error());
  if (started.interpreter.empty()) {
    say(options, "{} runs no Python that is known: started as it is", options.command[0]);
    return Repair{};
  }
  if (started.command.empty())
    say(options, "{}: the environment is that of {}", options.command[0],
        started.named_in.empty()
            ? fmt::format("{}, the active one, as far as its words tell", started.interpreter)
            : fmt::format("{}, which {} names", started.interpreter,
                          report::printable(started.named_in)));
  RepairRequest request;
  request.environment = started.interpreter;
  request.effects = false;
  request.imports = *imports;
  if (!imports->empty()) {
    const auto report = find_repairs(request);
    if (!report) return tl::unexpected<Error>(report.error());
    return choose(options, *report, fmt::format("import {}", fmt::join(*imports, ", ")));
  }
  request.program = read_python_program(started);
  return repair_for_program(options, started, request);
}

Result<Repair> repair_of(const RunOptions& options, const StartedPython& started) {
  if (options.repair == "none") return Repair{};
  if (options.repair == "auto") return automatic_repair(options, started);
  auto repair = read_rules_file(options.repair);
  if (!repair) return repair;
  const Tree tree("");
  if (!started.interpreter.empty())
    if (const auto python = find_interpreter(tree, started.interpreter))
      for (const std::string& sentence : what_is_foreign(*repair, *python))
        say(options, "{}", sentence);
  return repair;
}

// A script is started in any directory; a name without a slash is searched in PATH.
std::vector<std::string> from_anywhere(std::vector<std::string> command,
                                       const StartedPython& started) {
  std::error_code error;
  if (command[0].find('/') != std::string::npos)
    command[0] = std::filesystem::absolute(command[0], error).string();
  const PythonCommand python = split_python_command(started.command);
  const bool is_interpreter = !started.path.empty() && find_interpreter(Tree(""), started.path);
  if (is_interpreter && python.kind == PythonCommand::kScript &&
      started.command.size() <= command.size() && std::filesystem::exists(python.program, error))
    command[command.size() - started.command.size() + python.arguments - 1] =
        std::filesystem::absolute(python.program, error).string();
  return command;
}

// As a shell takes it. What the user's own variables hold is named, not written out.
void print_dry(const RunOptions& options, const std::vector<VariableChange>& changes) {
  for (const VariableChange& variable : changes) {
    const std::string line = variable.holds_own ? variable.shell
                             : variable.value   ? variable.name + "=" + shell_word(*variable.value)
                                                : "unset " + variable.name;
    fmt::print("{}  # {}\n", line, variable.reason);
  }
  std::vector<std::string> words;
  for (const std::string& word : without_secret_arguments(options.command))
    words.push_back(shell_word(word));
  fmt::print("{}\n", fmt::join(words, " "));
  if (!options.write.empty())
    fmt::print("# would be written to {}\n", report::printable(options.write));
}

Result<void> write_script(const std::string& path, const std::string& text) {
  if (auto done = write_file(path, text); !done) return done;
  if (path == "-") return {};  // standard output is nobody's to make executable
  if (::chmod(path.c_str(), 0755) != 0) return fail("cannot make " + path + " executable");
  return {};
}

Result<int> run(const RunOptions& options) {
  auto path = find_command(options.command[0]);
  if (!path) {
    say("cohabit run: {}\n", path.error().message);
    return kNotFound;
  }
  const StartedPython started = find_started_python(*path, options.command);
  auto repair = repair_of(options, started);
  if (!repair) return tl::unexpected<Error>(repair.error());
  const auto variables = own_variables("");
  const Variables environment(variables.begin(), variables.end());
  const auto off = variables.find("COHABIT_PRELOAD");
  if (!repair->flags.empty() && off != variables.end() && off->second == "off")
    say(options, "COHABIT_PRELOAD=off: the flags of dlopen calls stay as they are");
  auto changes = launch_variables(*repair, environment);
  if (!changes) return tl::unexpected<Error>(changes.error());
  if (auto added = add_needed_variables(options, started, *changes); !added)
    return tl::unexpected<Error>(added.error());
  if (const std::string by = environment_is_dropped_by(options.command);
      !by.empty() && !changes->empty())
    say(options,
        "{} gives what it starts other variables: what is set here may not reach it; "
        "put cohabit run behind it: {} ... cohabit run -- ...",
        by, by);
  if (options.dry_run) {
    print_dry(options, *changes);
    return 0;
  }
  if (!options.write.empty()) {
    auto done = write_script(
        options.write, launch_script(*repair, *changes, from_anywhere(options.command, started)));
    if (!done) return tl::unexpected<Error>(done.error());
    return 0;
  }
  std::fflush(stdout);
  const Error error = execute(*path, options.command, *changes);
  say("cohabit run: {}\n", error.message);
  return errno == ENOENT ? kNotFound : kCannotExecute;
}

}  // namespace

void add_run_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command =
      app.add_subcommand("run", "Start a command so that the frameworks it imports live together");
  command->footer(
      "Exit code: the command's; 125 when Cohabit failed before the start, 126 and 127 when the\n"
      "command cannot be executed or found. COHABIT_PRELOAD=off switches changes of dlopen flags "
      "off.");
  command
      ->add_option("--imports", options->imports,
                   "What the command imports, in order (default: worked out from its script)")
      ->check(refuse_empty_list);
  command->add_option("--repair", options->repair, "auto, none, or a file of `cohabit fix --write`")
      ->capture_default_str();
  command->add_flag("--no-env", options->no_env,
                    "Leave out the variables that the environment needs (`cohabit env`)");
  command
      ->add_option("--gpu-memory", options->gpu_memory,
                   "What each framework may take of a GPU: torch=40%,paddle=2GiB")
      ->check([](const std::string& text) {
        return std::string(text.empty() ? "it is empty (a variable that is not set?); expected "
                                          "torch=40% or paddle=2GiB"
                                        : "");
      });
  options->host.memory_option = "--gpu-total";
  command
      ->add_option("--driver", options->host.driver,
                   "As if NVIDIA's driver had this version: for --write, for another machine")
      ->check(refuse_empty);
  command->add_option("--gpu-total", options->host.memory,
                      "The GPU's whole memory: 24GiB (default: what nvidia-smi says)");
  command->add_option(
      "--defer", options->defer,
      "Load these modules when they are used, not where packages import them: torch");
  command->add_flag("--dry-run", options->dry_run,
                    "Print what would be set, start and write nothing");
  command->add_option("--write", options->write,
                      "Write a start-up script that does the same, and start nothing");
  command->add_flag("--quiet", options->quiet, "Do not say which repair is used, and what is set");
  command->add_option("command", options->command, "-- and the command with its arguments")
      ->required();
  command->positionals_at_end();
  command->callback([options, &exit_code] {
    const auto code = run(*options);
    if (code) {
      exit_code = *code;
      return;
    }
    say("cohabit run: {}\n", code.error().message);
    exit_code = kCannotRun;
  });
}

}  // namespace cohabit
