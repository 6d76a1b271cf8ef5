// cohabit env: what an environment needs set before a process starts, and what is set now.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/examine.h"
#include "cli/gpu_options.h"
#include "cli/launch_process.h"
#include "cli/program.h"
#include "findings/judged_variables.h"
#include "repair/launch_needs.h"
#include "report/launch_needs.h"

namespace cohabit {
namespace {

struct EnvOptions : TargetWords {
  std::string root;
  std::string format = "table";
  bool shell = false;
  bool check = false;
  cuda::AskedHost host;
};

Result<void> check_options(const EnvOptions& options) {
  const auto& format = options.format;
  if (format != "table" && format != "shell" && format != "json")
    return fail("--format cannot be " + format + "; it is one of table, shell, json");
  if (options.check && (options.shell || format == "shell"))
    return fail("--check judges what is set: it has nothing to export");
  if (!options.check && !(options.words[1].empty() && options.module.empty()))
    return fail("a program is looked at with --check: it may set variables itself");
  return {};
}

Result<int> print_needs(const EnvOptions& options, World& world, const cuda::GpuHost& host,
                        const VariableMap& variables) {
  report::NeedsReport report;
  report.environment = world.python->prefix;
  report.python = world.python->version;
  report.needs = find_needs({world.tree, *world.python, world.distributions, host, variables});
  auto of_processes = needs_of_processes(world, variables, host, options.host);
  if (!of_processes) return tl::unexpected<Error>(of_processes.error());
  report.lacks_driver = of_processes->lacks_driver;
  for (NeededVariable& variable : of_processes->variables)
    report.needs.variables.push_back(std::move(variable));
  const std::string text = options.format == "json" ? report::json(report)
                           : options.shell || options.format == "shell"
                               ? report::shell(report)
                               : full(report, wants_colour());
  if (auto done = print_report(text); !done) return tl::unexpected<Error>(done.error());
  return 0;
}

// What a program does to its own variables, by a plan of it.
struct SetByProgram {
  VariableMap places;  // by name
  std::vector<Finding> too_late;
};

Result<SetByProgram> look_at_program(World& world, const Program& program,
                                     const VariableMap& variables) {
  SetByProgram result;
  const Sequence planned = plan_program(world, program, variables);
  for (const python::PlannedVariable& variable : planned.plan->variables_changed) {
    result.places.try_emplace(variable.name,
                              fmt::format("line {} of {}", variable.line,
                                          variable.file.empty() ? program.title : variable.file));
  }
  report::Report report;
  if (auto done = examine_sequence(world, planned, report); !done)
    return tl::unexpected<Error>(done.error());
  for (Finding& finding : report.findings)
    if (finding.code == "EV003") result.too_late.push_back(std::move(finding));
  return result;
}

Result<int> print_check(const EnvOptions& options, World& world,
                        const std::optional<Program>& program, cuda::GpuHost host,
                        const VariableMap& variables) {
  EnvironmentOptions about;
  about.variables = variables;
  about.gpu = std::move(host);
  const EnvironmentCase examined(world.tree, *world.python, world.distributions, std::move(about));
  VariableJudgement judged = judge_each_variable(examined);
  if (program) {
    auto set = look_at_program(world, *program, variables);
    if (!set) return tl::unexpected<Error>(set.error());
    add_set_by_program(examined, set->places, std::move(set->too_late), judged);
  }
  report::VariableCheck check;
  check.environment = world.python->prefix;
  check.python = world.python->version;
  check.variables = std::move(judged.variables);
  check.findings = std::move(judged.findings);
  const std::string text =
      options.format == "json" ? report::json(check) : full(check, wants_colour());
  if (auto done = print_report(text); !done) return tl::unexpected<Error>(done.error());
  return std::any_of(check.findings.begin(), check.findings.end(),
                     [](const Finding& finding) { return finding.severity >= Severity::kWarning; })
             ? 1
             : 0;
}

Result<int> env(const EnvOptions& options) {
  if (auto good = check_options(options); !good) return tl::unexpected<Error>(good.error());
  const Tree tree(options.root);
  if (auto good = tree.check_root(); !good) return tl::unexpected<Error>(good.error());
  World world(tree);
  const auto target =
      read_target(tree, options, PythonVariables::from_environment(), own_variables(""));
  if (!target) return tl::unexpected<Error>(target.error());
  if (auto found = choose_environment(world, target->environment); !found)
    return tl::unexpected<Error>(found.error());
  const VariableMap variables = own_variables(options.root);
  world.machine = read_machine(tree, world.python->elf_machine, "", world.python->elf_interpreter);
  auto host = gpu_host_of(tree, world.machine, variables, options.host);
  if (!host) return tl::unexpected<Error>(host.error());
  return options.check ? print_check(options, world, target->program, std::move(*host), variables)
                       : print_needs(options, world, *host, variables);
}

}  // namespace

void add_env_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<EnvOptions>();
  CLI::App* command = app.add_subcommand(
      "env", "Print the variables that an environment needs set before a process starts");
  command->footer(
      "`eval \"$(cohabit env --export)\"` sets them in a shell; `cohabit run` sets them for a\n"
      "command. What is set already is never replaced.\n"
      "Exit code: 0; with --check 1 where a variable is misspelled, contradicts another or is set "
      "too late; 2\n"
      "Cohabit failed.");
  command
      ->add_option("environment", options->words[0],
                   "A venv, conda or other prefix, or its interpreter (default: the active one)")
      ->check(refuse_empty);
  command->add_option("program", options->words[1],
                      "With --check: a file that ends in .py or .ipynb, which may set variables "
                      "itself");
  command->add_option("arguments", options->arguments, "-- and the arguments of the program");
  command->add_option("-m", options->module, "The same for `python -m MODULE`")
      ->check(refuse_empty);
  command->add_flag("--export", options->shell, "As lines for a shell");
  command->add_flag("--check", options->check,
                    "Judge the variables that are set now, and those that PROGRAM sets: who reads "
                    "them, which contradict, which come too late");
  command->add_option("--format", options->format, "table, shell or json")->capture_default_str();
  command->add_option("--root", options->root, "Read files below this directory");
  add_gpu_options(*command, options->host);
  command->callback([options, &exit_code] { exit_code = exit_code_of(env(*options)); });
}

}  // namespace cohabit
