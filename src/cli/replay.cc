// cohabit replay: simulate the calls of a trace and write what would be loaded and bound.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <sstream>

#include "base/read_file.h"
#include "base/say.h"
#include "base/write_file.h"
#include "cli/commands.h"
#include "facts/trace/recorded_machine.h"
#include "facts/trace/trace.h"
#include "report/tsv.h"
#include "sim/simulation.h"

namespace cohabit {
namespace {

struct ReplayOptions {
  std::string trace, loads, bindings, results, search, batch, root;
  std::vector<std::string> without;
  int repeat = 1;
  bool stats = false;
  bool lazy_on_call = false;
};

Result<sim::Options> simulation_options(const ReplayOptions& options) {
  sim::Options result;
  result.lazy_at_load = !options.lazy_on_call;
  result.keep_search_steps = result.absent_subdirectories = !options.search.empty();
  for (const std::string& name : options.without) {
    const auto rule = sim::find_rule(name);
    if (!rule) return fail("there is no loader rule named " + name);
    result.rules.switch_off(*rule);
  }
  return result;
}

struct Outputs {
  std::string trace, loads, bindings, results, search = {};
  bool are_none() const {
    return loads.empty() && bindings.empty() && results.empty() && search.empty();
  }
};

Result<void> write_outputs(const sim::Simulation& simulation, const Outputs& outputs) {
  if (!outputs.loads.empty())
    if (auto done = write_file(outputs.loads, report::loads_table(simulation)); !done) return done;
  if (!outputs.bindings.empty())
    if (auto done = write_file(outputs.bindings, report::bindings_table(simulation)); !done)
      return done;
  if (!outputs.search.empty())
    if (auto done = write_file(outputs.search, report::search_table(simulation)); !done)
      return done;
  if (outputs.results.empty()) return {};
  std::string results = report::results_table(simulation);
  if (!simulation.start_error().empty()) results = "start\t" + simulation.start_error() + "\n";
  return write_file(outputs.results, results);
}

void print_stats(const sim::Simulation& simulation, double seconds, int round) {
  say("{{\"round\": {}, \"seconds\": {:.6f}, \"objects\": {}, \"bindings\": {}, "
      "\"missing\": {}, \"problems\": {}}}\n",
      round, seconds, simulation.objects().size(), simulation.bindings().size(),
      simulation.missing().size(), simulation.problems().size());
}

// What ld.so may have died of.
void print_damage(const sim::Simulation& simulation, const std::string& program) {
  std::vector<bool> seen(simulation.images().size());
  for (const sim::Object& object : simulation.objects()) {
    if (object.image >= seen.size() || seen[object.image]) continue;
    seen[object.image] = true;
    const Image& image = simulation.images()[object.image];
    for (const elf::Defect& defect : image.defects())
      if (defect.fatal) say("note: {} is damaged: {}\n", image.path, defect.what);
  }
  for (const auto& [object, what] : simulation.assertions()) {
    const std::string& name = simulation.objects()[object].name;
    say("note: ld.so itself ends the process: {}: {}\n", name.empty() ? program : name, what);
  }
}

void print_counts(const sim::Simulation& simulation) {
  const auto& results = simulation.results();
  const auto failed = std::count_if(results.begin(), results.end(),
                                    [](const sim::CallResult& one) { return one.failed; });
  const auto& missing = simulation.missing();
  const auto needed = std::count_if(missing.begin(), missing.end(),
                                    [](const sim::MissingSymbol& one) { return !one.weak; });
  fmt::print("{} calls, {} of them failed; {} files loaded, {} symbols bound, {} missing\n",
             results.size(), failed, simulation.load_order().size(), simulation.bindings().size(),
             needed);
}

Result<void> replay_one(const ReplayOptions& options, const Outputs& outputs) {
  const auto begin_first = std::chrono::steady_clock::now();
  auto settings = simulation_options(options);
  if (!settings) return tl::unexpected<Error>(settings.error());
  auto trace = read_trace_file(outputs.trace);
  if (!trace) return tl::unexpected<Error>(trace.error());
  const Tree tree(options.root);
  if (auto good = tree.check_root(); !good) return good;
  Images images(tree);
  const Machine machine = recorded_machine(tree, trace->start);
  sim::BindingCache cache;
  if (options.repeat > 1) settings->cache = &cache;
  for (int round = 0; round < options.repeat; round++) {
    const auto begin = round == 0 ? begin_first : std::chrono::steady_clock::now();
    sim::Simulation simulation(images, machine, trace->start, *settings);
    simulation.run(trace->calls);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    if (options.stats) print_stats(simulation, elapsed.count(), round);
    if (round + 1 < options.repeat) continue;
    for (const std::string& problem : machine.problems) say("note: {}\n", problem);
    for (const std::string& problem : simulation.problems()) say("note: {}\n", problem);
    print_damage(simulation, trace->start.program);
    if (!simulation.start_error().empty())
      say("the process would not start: {}\n", simulation.start_error());
    for (const std::string& more : simulation.more_start_errors()) say("and: {}\n", more);
    if (outputs.are_none() && !options.stats) print_counts(simulation);
    if (auto written = write_outputs(simulation, outputs); !written) return written;
  }
  return {};
}

// Lines of trace, loads, bindings and results files, separated by tabs.
Result<void> replay_batch(const ReplayOptions& options) {
  auto list = read_file(options.batch);
  if (!list) return tl::unexpected<Error>(list.error());
  std::istringstream lines(*list);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    Outputs outputs;
    std::getline(fields, outputs.trace, '\t');
    std::getline(fields, outputs.loads, '\t');
    std::getline(fields, outputs.bindings, '\t');
    std::getline(fields, outputs.results, '\t');
    if (auto done = replay_one(options, outputs); !done) return done;
  }
  return {};
}

}  // namespace

void add_replay_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ReplayOptions>();
  CLI::App* command = app.add_subcommand(
      "replay", "Simulate the calls of a trace: what would be loaded and what would bind to what");
  command->add_option("trace", options->trace, "Trace file of `cohabit trace`");
  command->add_option("--loads", options->loads, "Write the files loaded, in order");
  command->add_option("--bindings", options->bindings, "Write every symbol binding");
  command->add_option("--results", options->results, "Write the outcome of every call");
  command->add_option(
      "--search", options->search,
      "Write every place where a file was looked for, in order, and why it was not it");
  command->add_option("--root", options->root, "Read files below this directory");
  command->add_option("--batch", options->batch,
                      "Replay many: lines of TRACE, LOADS, BINDINGS, RESULTS separated by tabs");
  command->add_option("--repeat", options->repeat, "Simulate this often over the same files")
      ->check(CLI::Range(1, 1000000));
  command->add_flag("--stats", options->stats, "Print time and counts as JSON on stderr");
  command->add_flag("--lazy-on-call", options->lazy_on_call,
                    "Bind lazy function symbols only at recorded first calls");
  command->add_option("--without", options->without, "Switch a loader rule off (for tests)");
  command->callback([options, &exit_code] {
    const bool batch = !options->batch.empty();
    if (!batch && options->trace.empty()) throw CLI::RequiredError("trace");
    const auto done = batch
                          ? replay_batch(*options)
                          : replay_one(*options, {options->trace, options->loads, options->bindings,
                                                  options->results, options->search});
    if (done) return;
    say("cohabit: {}\n", done.error().message);
    exit_code = 2;
  });
}

}  // namespace cohabit
