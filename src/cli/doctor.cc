// cohabit doctor: gather facts; simulate; judge; report.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/write_file.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/configuration.h"
#include "cli/doctor_options.h"
#include "cli/examine.h"
#include "cli/gpu_options.h"
#include "cli/recorded.h"
#include "facts/python/interpreter.h"
#include "facts/trace/recorded_machine.h"
#include "findings/rule.h"
#include "report/printable.h"
#include "report/report.h"

namespace cohabit {
namespace {

constexpr const char* kSummary = "summary";  // of bare `cohabit`
const std::vector<std::string> kFormats = {"full", "concise", "json", "sarif", "github"};
const std::vector<std::string> kLevels = {"error", "warning", "note", "never"};

Result<void> check_choice(const std::string& option, const std::string& value,
                          const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return {};
  const auto near = nearest_name(value, choices);
  return fail(fmt::format("{} cannot be {}; it is one of {}{}", option, value,
                          fmt::join(choices, ", "),
                          near ? fmt::format(" (did you mean {}?)", *near) : ""));
}

// And says which it is, where the user did not.
Result<void> choose_environment(World& world, const std::string& place) {
  if (auto found = find_environment(world, place); !found) return found;
  if (!world.python->found_by.empty())
    fmt::print(stderr, "examining {} (found by {})\n", world.python->prefix,
               world.python->found_by);
  return {};
}

// What is examined: the frameworks of the environment, these imports, or a program.
struct Subject {
  std::string environment;  // empty: to be found
  std::vector<std::string> imports;
  std::optional<Program> program;
  bool is_one_process() const { return program || !imports.empty(); }
};

Result<Subject> read_subject(const DoctorOptions& options, const Tree& tree) {
  Subject subject;
  auto imports = read_module_list(options.imports);
  if (!imports) return tl::unexpected<Error>(imports.error());
  subject.imports = std::move(*imports);
  if (!options.module.empty())
    if (auto module = read_module_list(options.module); !module || module->size() != 1)
      return fail("-m takes the name of one module, not " + options.module);
  std::vector<std::string> words;  // each may be left out, and then the next stands in its place
  for (const std::string& word : options.words)
    if (!word.empty()) words.push_back(word);
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  const auto targets = split_targets(tree, words, !options.module.empty());
  if (!targets) return tl::unexpected<Error>(targets.error());
  subject.environment = targets->environment;
  auto program = read_program(tree, *targets, options.module);
  if (!program) return tl::unexpected<Error>(program.error());
  subject.program = std::move(*program);
  if (subject.program && !subject.imports.empty())
    return fail("a program says itself what it imports: leave --imports out");
  return subject;
}

Result<Trace> record(const DoctorOptions& options, const Subject& subject, const World& world) {
  if (!subject.is_one_process())
    return fail("say what to run: --imports a,b or a program, or give --replay FILE");
  if (!options.root.empty()) return fail("--trace runs on this machine: leave --root out");
  auto python = find_interpreter(world.tree, subject.environment);
  if (!python) return tl::unexpected<Error>(python.error());
  return subject.program ? record_program(*python, *subject.program)
                         : record_imports(*python, subject.imports);
}

// What was recorded was run: it is not another order because somebody says so.
Result<std::vector<std::string>> recorded_imports(const Trace& trace,
                                                  const std::vector<std::string>& wanted) {
  const std::vector<std::string> known = imports_of_command(trace.start.arguments);
  if (wanted.empty() || known.empty() || known == wanted) return wanted.empty() ? known : wanted;
  return fail(
      fmt::format("the trace is of a process that imports {}, --imports says {}: leave --imports "
                  "out, or record what you mean",
                  fmt::join(known, ", "), fmt::join(wanted, ", ")));
}

// The owners of files come from the environment: another one's would be wrong.
Result<void> check_same_environment(const World& world, const std::string& wanted,
                                    const std::string& program) {
  if (wanted.empty()) return {};
  const auto given = find_interpreter(world.tree, wanted);
  const auto recorded = find_interpreter(world.tree, program);
  if (!given || !recorded) return {};
  const auto given_place = world.tree.stat(given->prefix);
  const auto recorded_place = world.tree.stat(recorded->prefix);
  if (!given_place || !recorded_place || given_place->id == recorded_place->id) return {};
  return fail(
      fmt::format("the trace was recorded in {}, not in {}: leave the environment out, or record "
                  "it with `cohabit trace`",
                  recorded->prefix, given->prefix));
}

// A recorded run: given, or made now.
Result<void> examine_recorded(const DoctorOptions& options, const Subject& subject, World& world,
                              report::Report& report) {
  auto trace =
      options.replay.empty() ? record(options, subject, world) : read_trace_file(options.replay);
  if (!trace) return tl::unexpected<Error>(trace.error());
  // A trace may be of a program that is no Python, or of an environment that is gone.
  if (auto same = check_same_environment(world, subject.environment, trace->start.program); !same)
    return same;
  (void)choose_environment(
      world, subject.environment.empty() ? trace->start.program : subject.environment);
  world.machine = recorded_machine(world.tree, trace->start);
  report.program = trace->start.program;
  report.glibc = trace->start.glibc;
  report.architecture = trace->start.machine;
  Sequence sequence;
  auto imports = recorded_imports(*trace, subject.imports);
  if (!imports) return tl::unexpected<Error>(imports.error());
  sequence.imports = std::move(*imports);
  if (subject.program) sequence.program = subject.program->title;
  sequence.trace = std::move(*trace);
  return examine_sequence(world, sequence, report, {options.loads, options.bindings});
}

// A program does not fail of what it leaves alone.
Result<void> examine_one(const DoctorOptions& options, World& world, const Sequence& sequence,
                         report::Report& report) {
  if (!options.plan.empty())
    if (auto done = write_file(options.plan, report::plan_json(*sequence.plan, sequence.imports));
        !done)
      return done;
  if (auto done = examine_sequence(world, sequence, report, {options.loads, options.bindings});
      !done)
    return done;
  soften_what_is_not_loaded(report);
  return {};
}

bool is_found(const std::vector<cuda::DriverLibrary>& libraries) {
  return std::any_of(libraries.begin(), libraries.end(),
                     [](const auto& library) { return !library.found_by.empty(); });
}

// A GPU is there, or its driver is asked for: what happens after the imports counts too.
Result<void> prepare_gpu(const DoctorOptions& options, const cuda::GpuHost& host, World& world) {
  const bool driver_is_there = is_found(host.libcuda);
  const bool asked = options.assume_gpu || !options.host.driver.empty() || !options.host.sm.empty();
  if (asked || (host.has_gpu() && driver_is_there)) return assume_gpu(world, driver_is_there);
  return {};
}

// Processes that are never started.
Result<void> examine_planned(const DoctorOptions& options, const Subject& subject, World& world,
                             report::Report& report) {
  if (auto found = choose_environment(world, subject.environment); !found) return found;
  world.machine = read_machine(world.tree, world.python->elf_machine);
  report.program = world.python->executable;
  report.architecture = world.python->elf_machine == elf::EM_AARCH64 ? "aarch64" : "x86_64";
  report.glibc = fmt::format("{}.{}", world.machine.glibc.major, world.machine.glibc.minor);
  const auto environment = own_variables(options.root);
  EnvironmentOptions about;
  about.variables = environment;
  if (auto gpu = gpu_host_of(world.tree, world.machine, environment, options.host))
    about.gpu = std::move(*gpu);
  else
    return tl::unexpected<Error>(gpu.error());
  report.gpu = about.gpu;
  if (auto done = prepare_gpu(options, about.gpu, world); !done) return done;
  if (subject.program) {
    about.first_directory = subject.program->directory;
    examine_environment(world, report, std::move(about));
    return examine_one(options, world, plan_program(world, *subject.program, environment), report);
  }
  examine_environment(world, report, std::move(about));
  if (subject.imports.empty()) {
    const auto frameworks = find_frameworks(world);
    if (frameworks.empty())
      fmt::print(stderr,
                 "there is no framework that Cohabit knows in {}: say what is imported, "
                 "--imports a,b\n",
                 world.python->prefix);
    return examine_orders(world, frameworks, environment, report);
  }
  return examine_one(options, world, plan_sequence(world, subject.imports, environment), report);
}

Result<report::Report> examine(const DoctorOptions& options, const Tree& tree) {
  const auto subject = read_subject(options, tree);
  if (!subject) return tl::unexpected<Error>(subject.error());
  const bool recorded = options.trace || !options.replay.empty();
  const bool writes = !options.plan.empty() || !options.loads.empty() || !options.bindings.empty();
  if (!recorded && !subject->is_one_process() && writes)
    return fail(
        "--plan, --loads and --bindings are about one process: say which, --imports a,b or a "
        "program");
  if (options.trace && !options.replay.empty())
    return fail("--trace makes a recording and --replay reads one: give one of them");
  if (recorded && options.assume_gpu)
    return fail("--assume-gpu is for what is not run: leave --trace and --replay out");
  if (recorded && !options.plan.empty())
    return fail("--plan is for what is not run: leave --trace out");
  World world(tree);
  report::Report report;
  auto done = recorded ? examine_recorded(options, *subject, world, report)
                       : examine_planned(options, *subject, world, report);
  if (!done) return tl::unexpected<Error>(done.error());
  report.environment = world.python ? world.python->prefix : "";
  report.python = world.python ? world.python->version : "";
  return report::without_secrets(std::move(report), own_variables(options.root));
}

Result<Configuration> configure(const DoctorOptions& options) {
  Configuration result;
  if (!options.no_configuration) {
    auto found = read_configuration(options.configuration);
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
  fmt::print(stderr, "{} findings written to {}\n", findings.size(), file);
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

bool reaches(const report::Report& report, const std::string& level) {
  if (level == "never") return false;
  const Severity least = level == "error"     ? Severity::kError
                         : level == "warning" ? Severity::kWarning
                                              : Severity::kNote;
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [&](const Finding& finding) { return finding.severity >= least; });
}

Result<int> doctor(const DoctorOptions& options) {
  const auto configuration = configure(options);
  if (!configuration) return tl::unexpected<Error>(configuration.error());
  const Tree tree(options.root);
  if (auto good = tree.check_root(); !good) return tl::unexpected<Error>(good.error());
  auto report = examine(options, tree);
  if (!report) return tl::unexpected<Error>(report.error());
  report->suppressed = apply_policy(configuration->policy, report->environment, report->findings);
  number_findings(*report);
  if (!options.write_baseline.empty())
    if (auto done = write_baseline(options.write_baseline, *report); !done)
      return tl::unexpected<Error>(done.error());
  const std::string text = draw(options, *report);
  if (auto done = options.output.empty() ? print_report(text) : write_file(options.output, text);
      !done)
    return tl::unexpected<Error>(done.error());
  return options.write_baseline.empty() && reaches(*report, configuration->fail_on) ? 1 : 0;
}

Result<int> check_and_run(const DoctorOptions& options) {
  if (auto good = check_choice("--format", options.format, kFormats); !good)
    return tl::unexpected<Error>(good.error());
  if (!options.fail_on.empty())
    if (auto good = check_choice("--fail-on", options.fail_on, kLevels); !good)
      return tl::unexpected<Error>(good.error());
  return doctor(options);
}

}  // namespace

void add_doctor_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = app.add_subcommand(
      "doctor", "Say what clashes in an environment, why, and what to do about it");
  command->footer("Exit code: 0 nothing at or above --fail-on, 1 findings, 2 Cohabit failed.");
  command->add_option("environment", options->words[0],
                      "A venv, conda or other prefix, or its interpreter (default: $VIRTUAL_ENV, "
                      ".venv here, $CONDA_PREFIX, python in PATH)");
  command->add_option("program", options->words[1],
                      "A file that ends in .py or .ipynb; default: the frameworks");
  command->add_option("arguments", options->arguments, "-- and the arguments of the program");
  command->add_option("-m", options->module, "Examine `python -m MODULE`, from this directory");
  command
      ->add_option("--imports", options->imports,
                   "What is imported, in order: a,b (default: the frameworks that are there, each "
                   "alone and every pair in both orders)")
      ->check(refuse_empty_list);
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
  command->add_flag("--assume-gpu", options->assume_gpu,
                    "As if a GPU and its driver were there: what is opened when a device is set up "
                    "and first used is examined too (also with --driver and --sm)");
  add_gpu_options(*command, options->host);
  command->add_option("--plan", options->plan, "Write what the imports would open (JSON)");
  command->add_option("--loads", options->loads, "Write what is loaded, as a table");
  command->add_option("--bindings", options->bindings, "Write every symbol binding, as a table");
  command->add_option("--output", options->output, "Write the report to this file");
  command->callback([options, &exit_code] { exit_code = exit_code_of(check_and_run(*options)); });
}

int summarize() {
  DoctorOptions options;
  options.format = kSummary;
  return exit_code_of(doctor(options));
}

}  // namespace cohabit
