// cohabit doctor: gather facts; simulate; judge; report.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <regex>

#include "actions/trace.h"
#include "cli/commands.h"
#include "cli/examine.h"
#include "facts/python/interpreter.h"
#include "facts/trace/recorded_machine.h"
#include "findings/rule.h"
#include "report/report.h"
#include "report/tsv.h"

namespace cohabit {
namespace {

struct DoctorOptions {
  std::string environment;
  std::string imports;
  bool trace = false;
  std::string replay;
  std::string root;
  std::string format = "full";
  std::string fail_on = "error";
  std::string output;
  std::string plan, loads, bindings;  // files to write
};

const std::vector<std::string> kFormats = {"full", "concise", "json"};
const std::vector<std::string> kLevels = {"error", "warning", "note", "never"};

Result<void> check_choice(const std::string& option, const std::string& value,
                          const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return {};
  const auto near = nearest_name(value, choices);
  return fail(fmt::format("{} cannot be {}; it is one of {}{}", option, value,
                          fmt::join(choices, ", "),
                          near ? fmt::format(" (did you mean {}?)", *near) : ""));
}

Result<std::vector<std::string>> split_imports(const std::string& text) {
  static const std::regex kModule("[A-Za-z_][A-Za-z0-9_]*(\\.[A-Za-z_][A-Za-z0-9_]*)*");
  std::vector<std::string> names;
  std::string word;
  for (const char c : text + ",") {
    if (c != ',') {
      if (c != ' ') word += c;
      continue;
    }
    if (word.empty()) continue;
    if (!std::regex_match(word, kModule)) return fail("not the name of a Python module: " + word);
    names.push_back(word);
    word.clear();
  }
  return names;
}

// The imports of `python -c "import a; import b"`: what a trace was asked to do.
std::vector<std::string> imports_of_command(const std::vector<std::string>& arguments) {
  static const std::regex kImport(
      "(?:^|[;\\n])\\s*(?:import|from)\\s+([A-Za-z_][\\w.]*)((?:\\s*,\\s*[A-Za-z_][\\w.]*)*)");
  std::vector<std::string> names;
  for (size_t i = 0; i + 1 < arguments.size(); i++) {
    if (arguments[i] != "-c") continue;
    const std::string& code = arguments[i + 1];
    for (std::sregex_iterator at(code.begin(), code.end(), kImport), end; at != end; ++at) {
      names.push_back((*at)[1]);
      if (auto more = split_imports((*at)[2].str()))
        names.insert(names.end(), more->begin(), more->end());
    }
    break;
  }
  return names;
}

// An empty directory: files of the current one would shadow modules.
class NeutralDirectory {
 public:
  NeutralDirectory() {
    char name[] = "/tmp/cohabit-doctor-XXXXXX";
    if (mkdtemp(name)) path_ = name;
  }
  ~NeutralDirectory() {
    if (!path_.empty()) rmdir(path_.c_str());
  }
  NeutralDirectory(const NeutralDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Result<Trace> record_imports(const Interpreter& python, const std::vector<std::string>& imports) {
  std::string code;
  for (const std::string& name : imports) code += (code.empty() ? "import " : "; import ") + name;
  fmt::print(stderr, "running {} -c '{}'\n", python.executable, code);
  const NeutralDirectory directory;
  RecordOptions options;
  options.working_directory = directory.path();
  options.standard_output = STDERR_FILENO;
  return record_trace(options, {python.executable, "-c", code});
}

// The variables of the examined process: ours, on this machine; below another root there are none.
std::map<std::string, std::string> variables(const DoctorOptions& options) {
  std::map<std::string, std::string> result;
  if (!options.root.empty()) return result;
  for (char** entry = environ; entry && *entry; entry++) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos)
      result.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return result;
}

Result<void> find_environment(const std::string& place, World& world) {
  auto python = find_interpreter(world.tree, place);
  if (!python) return tl::unexpected<Error>(python.error());
  world.python = std::move(*python);
  world.distributions = Distributions::read(world.tree, *world.python);
  return {};
}

// A recorded run: given, or made now.
Result<void> examine_recorded(const DoctorOptions& options, World& world,
                              std::vector<std::string> imports, report::Report& report) {
  Result<Trace> trace = fail("");
  if (!options.replay.empty()) {
    trace = read_trace_file(options.replay);
  } else {
    if (imports.empty()) return fail("say what to import: --imports a,b, or give --replay FILE");
    if (!options.root.empty()) return fail("--trace runs on this machine: leave --root out");
    auto python = find_interpreter(world.tree, options.environment);
    if (!python) return tl::unexpected<Error>(python.error());
    trace = record_imports(*python, imports);
  }
  if (!trace) return tl::unexpected<Error>(trace.error());
  // A trace may be of a program that is no Python, or of an environment that is gone.
  (void)find_environment(options.environment.empty() ? trace->start.program : options.environment,
                         world);
  world.machine = recorded_machine(world.tree, trace->start);
  if (imports.empty()) imports = imports_of_command(trace->start.arguments);
  report.program = trace->start.program;
  report.glibc = trace->start.glibc;
  report.architecture = trace->start.machine;
  return examine_sequence(world, {imports, std::move(*trace), std::nullopt}, report,
                          {options.loads, options.bindings});
}

// Processes that are never started.
Result<void> examine_planned(const DoctorOptions& options, World& world,
                             const std::vector<std::string>& imports, report::Report& report) {
  if (auto found = find_environment(options.environment, world); !found) return found;
  world.machine = read_machine(world.tree, world.python->elf_machine);
  report.program = world.python->executable;
  report.architecture = world.python->elf_machine == elf::EM_AARCH64 ? "aarch64" : "x86_64";
  report.glibc = fmt::format("{}.{}", world.machine.glibc.major, world.machine.glibc.minor);
  examine_environment(world, report);
  const auto environment = variables(options);
  std::vector<std::vector<std::string>> orders = {imports};
  if (imports.empty()) orders = orders_of(find_frameworks(world));
  for (const std::vector<std::string>& order : orders) {
    const Sequence sequence = plan_sequence(world, order, environment);
    if (!options.plan.empty())
      if (auto done = report::write_file(options.plan, report::plan_json(*sequence.plan, order));
          !done)
        return done;
    if (auto done = examine_sequence(world, sequence, report, {options.loads, options.bindings});
        !done)
      return done;
  }
  return {};
}

Result<report::Report> examine(const DoctorOptions& options, const Tree& tree,
                               const std::vector<std::string>& imports) {
  const bool recorded = options.trace || !options.replay.empty();
  const bool writes = !options.plan.empty() || !options.loads.empty() || !options.bindings.empty();
  if (!recorded && imports.empty() && writes)
    return fail("--plan, --loads and --bindings are about one sequence: say which, --imports a,b");
  if (recorded && !options.plan.empty())
    return fail("--plan is for what is not run: leave --trace out");
  World world(tree);
  report::Report report;
  auto done = recorded ? examine_recorded(options, world, imports, report)
                       : examine_planned(options, world, imports, report);
  if (!done) return tl::unexpected<Error>(done.error());
  report.environment = world.python ? world.python->prefix : "";
  report.python = world.python ? world.python->version : "";
  number_findings(report);
  return report;
}

std::string draw(const DoctorOptions& options, const report::Report& report) {
  if (options.format == "json") return report::json(report);
  if (options.format == "concise") return report::concise(report);
  const char* no_colour = std::getenv("NO_COLOR");
  const bool colour = options.output.empty() && isatty(STDOUT_FILENO) && !(no_colour && *no_colour);
  return report::full(report, colour);
}

Result<void> write_report(const std::string& text, const std::string& path) {
  if (!path.empty()) return report::write_file(path, text);
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0)
    return fail(fmt::format("cannot write the report: {}", std::strerror(errno)));
  return {};
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
  if (auto good = check_choice("--format", options.format, kFormats); !good)
    return tl::unexpected<Error>(good.error());
  if (auto good = check_choice("--fail-on", options.fail_on, kLevels); !good)
    return tl::unexpected<Error>(good.error());
  auto imports = split_imports(options.imports);
  if (!imports) return tl::unexpected<Error>(imports.error());
  const Tree tree(options.root);
  const auto report = examine(options, tree, *imports);
  if (!report) return tl::unexpected<Error>(report.error());
  if (auto done = write_report(draw(options, *report), options.output); !done)
    return tl::unexpected<Error>(done.error());
  return reaches(*report, options.fail_on) ? 1 : 0;
}

}  // namespace

void add_doctor_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = app.add_subcommand(
      "doctor", "Say what clashes in an environment, why, and what to do about it");
  command->footer("Exit code: 0 nothing at or above --fail-on, 1 findings, 2 Cohabit failed.");
  command->add_option(
      "environment", options->environment,
      "A venv, conda or other prefix, or its interpreter (default: the active one)");
  command->add_option("--imports", options->imports,
                      "What is imported, in order: a,b (default: the frameworks that are there, "
                      "each alone and every pair in both orders)");
  command->add_flag("--trace", options->trace,
                    "Run the imports in a child process and record them, instead of "
                    "working out from the files what they open");
  command->add_option("--replay", options->replay, "Use this trace of `cohabit trace` instead");
  command->add_option("--root", options->root, "Read files below this directory");
  command->add_option("--format", options->format, "full, concise or json")->capture_default_str();
  command->add_option("--fail-on", options->fail_on, "error, warning, note or never")
      ->capture_default_str();
  command->add_option("--plan", options->plan, "Write what the imports would open (JSON)");
  command->add_option("--loads", options->loads, "Write what is loaded, as a table");
  command->add_option("--bindings", options->bindings, "Write every symbol binding, as a table");
  command->add_option("--output", options->output, "Write the report to this file");
  command->callback([options, &exit_code] {
    const auto code = doctor(*options);
    if (code) {
      exit_code = *code;
      return;
    }
    fmt::print(stderr, "cohabit: {}\n", code.error().message);
    exit_code = 2;
  });
}

}  // namespace cohabit
