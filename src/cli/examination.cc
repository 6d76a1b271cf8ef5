#include "cli/examination.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/say.h"
#include "base/secrets.h"
#include "base/variables.h"
#include "base/write_file.h"
#include "cli/arguments.h"
#include "cli/asked_modules.h"
#include "cli/examine.h"
#include "cli/gpu_options.h"
#include "cli/lasting.h"
#include "cli/progress.h"
#include "cli/recorded.h"
#include "facts/python/interpreter.h"
#include "facts/trace/recorded_machine.h"
#include "findings/variables.h"
#include "report/printable.h"

namespace cohabit {
namespace {

VariableMap variables_of(const DoctorOptions& options) {
  return options.surroundings ? options.surroundings->variables : own_variables(options.root);
}

PythonVariables python_variables(const DoctorOptions& options) {
  return options.surroundings ? PythonVariables::of(options.surroundings->variables)
                              : PythonVariables::from_environment();
}

// What is examined: the frameworks of the environment, these imports, or a program.
struct Subject {
  std::string environment;  // empty: to be found
  std::vector<std::string> imports;
  std::optional<Program> program;
  std::optional<std::string> first_directory;  // of sys.path
  bool is_one_process() const { return program || !imports.empty(); }
};

// In which to look for what a report must not tell: the program's arguments, too.
VariableMap with_secrets_of(const Subject& subject, const VariableMap& variables) {
  return subject.program ? with_secret_arguments(variables, subject.program->arguments) : variables;
}

Result<Subject> read_subject(const DoctorOptions& options, const Tree& tree) {
  Subject subject;
  auto imports = read_module_list(options.imports);
  if (!imports) return tl::unexpected<Error>(imports.error());
  subject.imports = std::move(*imports);
  auto target = read_target(tree, options, python_variables(options), variables_of(options));
  if (!target) return tl::unexpected<Error>(target.error());
  subject.environment = std::move(target->environment);
  subject.program = std::move(target->program);
  subject.first_directory = subject.program ? subject.program->directory
                                            : first_directory(tree, python_variables(options));
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

// What no Python did can be no import; of a program that is gone nobody knows.
Result<void> check_is_python(const World& world, const std::vector<std::string>& wanted,
                             const std::string& program) {
  if (wanted.empty() || !world.tree.stat(program) || find_interpreter(world.tree, program))
    return {};
  return fail(
      fmt::format("the trace is of {}, which is no Python: leave --imports {} out, or record the "
                  "imports with `cohabit trace`",
                  program, fmt::join(wanted, ",")));
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

// The environment is judged as it is now: what has happened since is not recorded.
Result<void> judge_recorded(const DoctorOptions& options, const Subject& subject, World& world,
                            const Sequence& sequence, report::Report& report) {
  // Of another time's variables, those that ld.so reads are recorded.
  const std::map<std::string, std::string> variables =
      options.replay.empty()
          ? own_variables(options.root)
          : std::map<std::string, std::string>(sequence.trace.start.environment.begin(),
                                               sequence.trace.start.environment.end());
  EnvironmentOptions about;
  about.variables = variables;
  about.verify_hashes = options.verify_hashes;
  if (options.replay.empty() || subject.program) about.first_directory = subject.first_directory;
  examine_environment(world, report, std::move(about));
  if (auto done = examine_sequence(world, sequence, report, {options.loads, options.bindings});
      !done)
    return done;
  soften_what_is_not_loaded(report);
  // A run of another time may have had another PYTHONPATH, or other files.
  if (!options.replay.empty()) return {};
  world.first_directory = directory_of_imports(world.tree, python_variables(options));
  if (world.python && subject.program)
    explain_by_plan(
        world, [&] { return plan_program(world, *subject.program, variables); }, report);
  else if (world.python && !sequence.imports.empty())
    explain_by_plan(
        world, [&] { return plan_sequence(world, sequence.imports, variables); }, report);
  return {};
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
  if (auto python = check_is_python(world, subject.imports, trace->start.program); !python)
    return python;
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
  if (subject.program)
    sequence.program = subject.program->title;
  else if (world.python)
    sequence.program = title_of_command(trace->start.arguments);
  sequence.trace = std::move(*trace);
  return judge_recorded(options, subject, world, sequence, report);
}

// A program does not fail of what it leaves alone.
Result<void> examine_one(const DoctorOptions& options, const Subject& subject, World& world,
                         const Sequence& sequence, report::Report& report) {
  if (!options.plan.empty())
    if (auto done = write_file(options.plan,
                               report::plan_json(*sequence.plan, sequence.imports,
                                                 with_secrets_of(subject, variables_of(options))));
        !done)
      return done;
  if (auto done = examine_sequence(world, sequence, report, {options.loads, options.bindings});
      !done)
    return done;
  soften_what_is_not_loaded(report);
  return {};
}

// A GPU is there, or its driver is asked for: what happens after the imports counts too.
Result<void> prepare_gpu(const DoctorOptions& options, const cuda::GpuHost& host, World& world) {
  const bool asked = options.assume_gpu || options.host.asks_gpu();
  return asked ? assume_gpu(world, host.has_driver()) : assume_gpu_that_is_there(world, host);
}

// Processes that are never started.
Result<void> examine_planned(const DoctorOptions& options, const Subject& subject, World& world,
                             report::Report& report) {
  if (auto found =
          choose_environment(world, subject.environment, python_variables(options), options.cache);
      !found)
    return found;
  const Cpu cpu =
      options.surroundings ? options.surroundings->cpu : read_cpu(world.python->elf_machine);
  world.machine =
      read_machine(world.tree, world.python->elf_machine, cpu, world.python->elf_interpreter);
  report.program = world.python->executable;
  report.architecture = world.python->elf_machine == elf::EM_AARCH64 ? "aarch64" : "x86_64";
  report.glibc = fmt::format("{}.{}", world.machine.glibc.major, world.machine.glibc.minor);
  const VariableMap environment = variables_of(options);
  EnvironmentOptions about;
  about.variables = environment;
  about.verify_hashes = options.verify_hashes;
  if (auto gpu = gpu_host_of(world.tree, world.machine, environment, options.host))
    about.gpu = std::move(*gpu);
  else
    return tl::unexpected<Error>(gpu.error());
  report.gpu = about.gpu;
  about.first_directory = subject.first_directory;
  Progress progress;
  AboutEnvironment facts(world, std::move(about));
  if (options.cache) world.kept = KeptPlans::open(*world.python, world.distributions);
  if (auto done = prepare_gpu(options, *report.gpu, world); !done) return done;
  const auto look_at_all = [&] {
    progress.step("files and metadata of what is installed");
    facts.add_to(report);
    progress.step("bindings");
  };
  if (subject.program) {
    progress.expect(3);
    progress.step(subject.program->title);
    ready(world);
    const Sequence planned = plan_program(world, *subject.program, environment);
    look_at_all();
    return examine_one(options, subject, world, planned, report);
  }
  if (subject.imports.empty()) {
    const ExaminedModules modules = find_examined_modules(world);
    if (modules.all().empty()) say("{}\n", no_framework_in(world.python->prefix));
    if (!modules.unpaired().empty()) report.unknowns.push_back(modules.unpaired());
    ready(world);
    examine_orders(world, modules, environment, report, progress, &facts);
    return {};
  }
  progress.expect(3);
  progress.step(fmt::format("import {}", fmt::join(subject.imports, "; import ")));
  ready(world);
  world.first_directory = directory_of_imports(world.tree, python_variables(options));
  const Sequence planned = plan_sequence(world, subject.imports, environment);
  look_at_all();
  return examine_one(options, subject, world, planned, report);
}

// What rules look at the value of; of other variables only whether they are set.
constexpr std::string_view kOfRules[] = {"CUDA_VISIBLE_DEVICES",
                                         "CUDA_HOME",
                                         "CUDA_PATH",
                                         "CUDA_ROOT",
                                         "XLA_FLAGS",
                                         "JAX_PLATFORMS",
                                         "XLA_CLIENT_MEM_FRACTION",
                                         "XLA_PYTHON_CLIENT_MEM_FRACTION",
                                         "XLA_PYTHON_CLIENT_PREALLOCATE",
                                         "XLA_PYTHON_CLIENT_ALLOCATOR",
                                         "TF_FORCE_GPU_ALLOW_GROWTH",
                                         "TF_GPU_ALLOCATOR",
                                         "USE_TORCH",
                                         "USE_TF",
                                         "FLAGS_allocator_strategy",
                                         "FLAGS_fraction_of_gpu_memory_to_use",
                                         "PYTORCH_ALLOC_CONF",
                                         "PYTORCH_CUDA_ALLOC_CONF",
                                         "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"};

bool decides_by_value(const std::string& name, const World& world) {
  const auto is_it = [&](std::string_view other) { return name == other; };
  return name.starts_with("LD_") || name == "GLIBC_TUNABLES" || name.starts_with("PYTHON") ||
         world.variables_sought.contains(name) ||
         std::any_of(std::begin(PythonVariables::kNames), std::end(PythonVariables::kNames),
                     is_it) ||
         std::any_of(std::begin(kOfRules), std::end(kOfRules), is_it);
}

// The variables that count for the result: those that were asked for, and those that the loader,
// the search for Python and the rules look at.
VariableMap telling_variables(const World& world, const VariableMap& all) {
  std::set<std::string> names = world.variables_sought;
  names.insert(std::begin(PythonVariables::kNames), std::end(PythonVariables::kNames));
  names.insert(std::begin(kOfRules), std::end(kOfRules));
  for (const KnownVariable& known : known_variables()) names.emplace(known.name);
  VariableMap result;
  for (const auto& [name, value] : all)
    if (names.contains(name) || name == "GLIBC_TUNABLES" || name.starts_with("PYTHON") ||
        looks_like_framework_variable(name))
      result.emplace(name, decides_by_value(name, world) ? value : std::string(value.size(), 'x'));
  return result;
}

// `started`: in a recorded run, which need not be one of Python.
std::string own_file(const Subject& subject, const World& world, const std::string& started) {
  if (subject.program && !subject.program->file.empty()) return subject.program->file;
  return world.python ? file_of_environment(world) : started;
}

}  // namespace

Result<report::Report> examine(const DoctorOptions& options, const Tree& tree, Surroundings* used) {
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
  Lasting<World> lasting(tree);
  World& world = *lasting;
  report::Report report;
  auto done = recorded ? examine_recorded(options, *subject, world, report)
                       : examine_planned(options, *subject, world, report);
  save_kept(world);
  if (!done) return tl::unexpected<Error>(done.error());
  report.environment = world.python ? world.python->prefix : "";
  report.own_file = own_file(*subject, world, report.program);
  if (tree.has_process()) report.directory = tree.current_directory();
  report.python = world.python ? world.python->version : "";
  const VariableMap variables = variables_of(options);
  if (used && world.python) {
    used->variables = telling_variables(world, variables);
    used->cpu = read_cpu(world.python->elf_machine);
    used->directory = tree.current_directory();
  }
  return report::without_secrets(std::move(report), with_secrets_of(*subject, variables));
}

}  // namespace cohabit
