// cohabit doctor: gather facts; simulate; judge; report.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <regex>

#include "actions/trace.h"
#include "cli/commands.h"
#include "facts/host/machine.h"
#include "facts/python/distributions.h"
#include "facts/python/interpreter.h"
#include "findings/rule.h"
#include "report/report.h"
#include "report/tsv.h"
#include "sim/simulation.h"

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

Result<Trace> read_trace(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  auto trace = parse_trace(std::string(std::istreambuf_iterator<char>(file), {}));
  if (!trace) return fail(path + ": " + trace.error().message);
  return trace;
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

Result<Trace> obtain_trace(const DoctorOptions& options, const Tree& tree,
                           const std::vector<std::string>& imports) {
  if (!options.replay.empty()) return read_trace(options.replay);
  if (imports.empty()) return fail("say what to import: --imports a,b, or give --replay FILE");
  if (!options.trace)
    return fail("this version needs to run the imports to know what they open: add --trace");
  if (!options.root.empty()) return fail("--trace runs on this machine: leave --root out");
  auto python = find_interpreter(tree, options.environment);
  if (!python) return tl::unexpected<Error>(python.error());
  return record_imports(*python, imports);
}

Machine machine_of(const Tree& tree, const StartFacts& start) {
  Machine machine =
      read_machine(tree, start.machine == "aarch64" ? elf::EM_AARCH64 : elf::EM_X86_64);
  if (!start.platform.empty()) machine.platform = start.platform;
  if (!start.hwcaps.empty()) machine.hwcaps = start.hwcaps;
  int major = 0;
  int minor = 0;
  if (std::sscanf(start.glibc.c_str(), "%d.%d", &major, &minor) == 2)
    machine.glibc = {major, minor};
  return machine;
}

std::string ending(const Trace& trace) {
  if (!trace.exit_status) return "";
  const int status = *trace.exit_status;
  if (WIFSIGNALED(status))
    return fmt::format("was killed by signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  return WEXITSTATUS(status) ? fmt::format("exited with code {}", WEXITSTATUS(status))
                             : "ended without an error";
}

std::string verdict(const report::Report& report, const sim::Simulation& simulation) {
  for (const Finding& finding : report.findings)
    if (finding.severity == Severity::kError) return "unsound";
  return simulation.start_error().empty() && simulation.problems().empty() ? "sound" : "unknown";
}

report::Report examine(const DoctorOptions& options, const Tree& tree, const Trace& trace,
                       std::vector<std::string> imports) {
  report::Report report;
  if (imports.empty()) imports = imports_of_command(trace.start.arguments);

  Images images(tree);
  const Machine machine = machine_of(tree, trace.start);
  const std::string& place =
      options.environment.empty() ? trace.start.program : options.environment;
  Distributions distributions;
  auto python = find_interpreter(tree, place);
  if (python) distributions = Distributions::read(tree, *python);

  sim::Options settings;
  settings.keep_search_steps = trace.exit_status.value_or(0) != 0;
  sim::Simulation simulation(images, machine, trace.start, settings);
  simulation.run(trace.calls);

  const Ownership ownership = read_ownership(tree, distributions, simulation, imports);
  const ProcessView process(simulation, ownership, trace.start.tracer);
  const Captures captures = find_captures(process);
  report.findings = check_all({process, captures, trace, imports});

  report.environment = python ? python->prefix : "";
  report.python = python ? python->version : "";
  report.program = trace.start.program;
  report.glibc = trace.start.glibc;
  report.architecture = trace.start.machine;
  report.unknowns = trace.blind_spots;
  report.unknowns.insert(report.unknowns.end(), simulation.problems().begin(),
                         simulation.problems().end());
  report::Order order{imports, verdict(report, simulation), {}, ending(trace)};
  for (const Finding& finding : report.findings) order.findings.push_back(finding.id);
  report.orders.push_back(std::move(order));
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
  auto trace = obtain_trace(options, tree, *imports);
  if (!trace) return tl::unexpected<Error>(trace.error());
  const report::Report report = examine(options, tree, *trace, *imports);
  if (auto done = write_report(draw(options, report), options.output); !done)
    return tl::unexpected<Error>(done.error());
  return reaches(report, options.fail_on) ? 1 : 0;
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
  command->add_option("--imports", options->imports, "What is imported, in order: a,b");
  command->add_flag("--trace", options->trace,
                    "Run the imports in a child process and record them");
  command->add_option("--replay", options->replay, "Use this trace of `cohabit trace` instead");
  command->add_option("--root", options->root, "Read files below this directory");
  command->add_option("--format", options->format, "full, concise or json")->capture_default_str();
  command->add_option("--fail-on", options->fail_on, "error, warning, note or never")
      ->capture_default_str();
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
