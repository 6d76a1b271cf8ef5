#include "cli/examine.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "base/write_file.h"
#include "cli/loaded_files.h"
#include "cli/order_plans.h"
#include "cli/progress.h"
#include "findings/environment.h"
#include "findings/fingerprint.h"
#include "findings/rule.h"
#include "report/tsv.h"
#include "sim/simulation.h"

namespace cohabit {
namespace {

constexpr size_t kMostPoints = 100;  // undecided, of one order

std::string ending(const Trace& trace) {
  if (!trace.exit_status) return "";
  const int status = *trace.exit_status;
  if (WIFSIGNALED(status))
    return fmt::format("was killed by signal {} ({})", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
  return WEXITSTATUS(status) ? fmt::format("exited with code {}", WEXITSTATUS(status))
                             : "ended without an error";
}

// Whether an import fails on a branch that only a running program decides about.
bool may_fail(const python::Plan& plan) {
  return std::any_of(plan.undecided.begin(), plan.undecided.end(),
                     [](const python::Undecided& point) { return point.may_fail; });
}

// What no simulation of it could know.
std::vector<std::string> unknowns_of(const Machine& machine, const Sequence& sequence,
                                     const sim::Simulation& simulation) {
  std::vector<std::string> unknowns;
  const auto add = [&](const auto& texts) {
    unknowns.insert(unknowns.end(), texts.begin(), texts.end());
  };
  add(machine.problems);
  add(simulation.problems());
  add(sequence.trace.blind_spots);
  if (!sequence.plan) return unknowns;
  add(sequence.plan->problems);
  const auto& points = sequence.plan->undecided;
  for (size_t i = 0; i < std::min(points.size(), kMostPoints); i++)
    unknowns.push_back(fmt::format("only a running program decides: {} at {}:{}", points[i].what,
                                   points[i].file, points[i].line));
  if (points.size() > kMostPoints)
    unknowns.push_back(fmt::format("and {} more point{} that only a running program decides",
                                   points.size() - kMostPoints,
                                   points.size() - kMostPoints == 1 ? "" : "s"));
  return unknowns;
}

// The findings of one order, as they come: those that are known from other orders are only named.
class OrderFindings {
 public:
  OrderFindings(report::Report& report, report::Order& order) : report_(report), order_(order) {
    for (const Finding& finding : report.findings) known_.emplace(cause_of(finding), finding.id);
  }

  void add(Finding finding) {
    if (finding.severity == Severity::kError && order_.phase.empty())
      order_.phase = finding.phase.empty() ? report::kAtImport : finding.phase;
    finding.id = fmt::format("new-{}", report_.findings.size());
    const auto [cause, fresh] = known_.try_emplace(cause_of(finding), finding.id);
    if (!finding.phase.empty() &&
        std::count(order_.findings.begin(), order_.findings.end(), cause->second))
      return;
    order_.findings.push_back(cause->second);
    if (fresh) report_.findings.push_back(std::move(finding));
  }

 private:
  report::Report& report_;
  report::Order& order_;
  std::unordered_map<std::string, std::string> known_;
};

bool goes_on(const Finding& later, const Finding& earlier) {
  if (later.code != earlier.code || earlier.libraries.empty()) return false;
  return std::all_of(
      earlier.libraries.begin(), earlier.libraries.end(), [&](const Library& library) {
        return std::any_of(later.libraries.begin(), later.libraries.end(),
                           [&](const Library& other) { return other.path == library.path; });
      });
}

// The distributions of the imports, what these name, in extras too, and all that those cannot do
// without. What somebody further down names in an extra (a framework, often) is not among them.
std::set<uint32_t> asked_for_by_imports(const Ownership& ownership) {
  std::set<uint32_t> asked(ownership.requested.begin(), ownership.requested.end());
  for (const uint32_t one : ownership.requested)
    asked.insert(ownership.distributions[one].needs.begin(),
                 ownership.distributions[one].needs.end());
  std::vector<uint32_t> waiting(asked.begin(), asked.end());
  while (!waiting.empty()) {
    const uint32_t one = waiting.back();
    waiting.pop_back();
    for (const uint32_t needed : ownership.distributions[one].always)
      if (asked.insert(needed).second) waiting.push_back(needed);
  }
  return asked;
}

// What comes of the opens after the imports, phase by phase. What was there before and only grows
// is not told again. `imported`: who owns the objects of the imports.
std::vector<Finding> judge_later(const World& world, ProcessTools& tools, const Sequence& sequence,
                                 sim::Simulation& simulation, const Ownership& imported,
                                 std::vector<Finding> earlier) {
  std::vector<Finding> found;
  Trace trace = sequence.trace;
  trace.exit_status.reset();
  const std::set<uint32_t> asked_for = asked_for_by_imports(imported);
  const auto is_asked = [&](sim::ObjectId id) {
    const std::vector<uint32_t>& owners = imported.owners(id);
    if (owners.empty() || asked_for.empty() || imported.asked.silently) return true;
    return std::any_of(owners.begin(), owners.end(),
                       [&](uint32_t owner) { return asked_for.contains(owner); });
  };
  for (const python::Phase phase : python::kLaterPhases) {
    const auto opens = tools.later->play(phase, simulation, trace.calls, is_asked);
    if (opens.empty()) continue;
    const Ownership ownership = read_ownership(world.tree, world.distributions, simulation,
                                               what_is_asked(world, tools, sequence.imports));
    const ProcessView process(simulation, ownership, trace.start.tracer);
    const Captures captures = find_captures(process, tools.captures);
    for (Finding& finding :
         check_all({process, captures, trace, sequence.imports, nullptr, sequence.program,
                    &world.distributions, phase, &opens, &*tools.later})) {
      if (std::any_of(earlier.begin(), earlier.end(),
                      [&](const Finding& known) { return goes_on(finding, known); }))
        continue;
      earlier.push_back(finding);
      found.push_back(std::move(finding));
    }
  }
  return found;
}

bool has_later_phases(const ProcessTools& tools, const Sequence& sequence) {
  return sequence.plan && sequence.plan->failure.empty() && tools.later && tools.later->has_gpu();
}

std::vector<std::string> files_of(const Sequence& sequence, const sim::Simulation& simulation) {
  const LoadedFiles loaded = loaded_files(sequence, simulation);
  return {loaded.begin(), loaded.end()};
}

// What comes of one order, whatever other orders there are.
struct Judged {
  report::Order order;                      // but for its findings
  std::vector<Finding> at_import, later;    // by the phase
  std::vector<std::string> loaded, in_all;  // files: by the imports, and later too
  std::vector<std::string> unknowns;
};

Judged judge(const World& world, ProcessTools& tools, const Sequence& sequence,
             sim::Simulation& simulation) {
  const Trace& trace = sequence.trace;
  const Ownership ownership = read_ownership(world.tree, world.distributions, simulation,
                                             what_is_asked(world, tools, sequence.imports));
  Judged judged;
  {
    const ProcessView process(simulation, ownership, trace.start.tracer);
    const Captures captures = find_captures(process, tools.captures);
    const python::Plan* plan = sequence.plan ? &*sequence.plan : nullptr;
    judged.at_import = check_all(
        {process, captures, trace, sequence.imports, plan, sequence.program, &world.distributions});
  }
  report::Order& order = judged.order;
  order.imports = sequence.imports;
  order.program = sequence.program;
  order.ended = ending(trace);
  judged.loaded = files_of(sequence, simulation);
  if (has_later_phases(tools, sequence)) {
    judged.later = judge_later(world, tools, sequence, simulation, ownership, judged.at_import);
    judged.in_all = files_of(sequence, simulation);
  }
  judged.unknowns = unknowns_of(world.machine, sequence, simulation);
  const bool is_whole = simulation.start_error().empty() && simulation.problems().empty() &&
                        !(sequence.plan && may_fail(*sequence.plan));
  order.verdict = is_whole ? "sound" : "unknown";
  if (!sequence.plan && !trace.exit_status) {
    judged.unknowns.insert(
        judged.unknowns.begin(),
        "the recording does not say how the process ended: it may be cut off, and calls may be "
        "missing at its end");
    order.verdict = "unknown";
  }
  return judged;
}

LoadedFiles views_of(const std::vector<std::string>& files) {
  return {files.begin(), files.end()};
}

// What is there of other orders is not told again.
void add_judged(const World& world, Judged judged, report::Report& report) {
  report::Order& order = judged.order;
  OrderFindings of_order(report, order);
  for (Finding& finding : judged.at_import) of_order.add(std::move(finding));
  note_broken(views_of(judged.loaded), report, order);
  for (Finding& finding : judged.later) of_order.add(std::move(finding));
  note_reach(world, views_of(judged.in_all.empty() ? judged.loaded : judged.in_all), report);
  if (!order.phase.empty()) order.verdict = "unsound";
  report.orders.push_back(std::move(order));
  std::unordered_set<std::string> known(report.unknowns.begin(), report.unknowns.end());
  for (std::string& text : judged.unknowns)
    if (known.insert(text).second) report.unknowns.push_back(std::move(text));
}

}  // namespace

Result<void> examine_sequence(World& world, const Sequence& sequence, report::Report& report,
                              const SequenceOutputs& outputs) {
  const auto simulation = simulate(world, world, sequence);
  add_judged(world, judge(world, world, sequence, *simulation), report);
  if (!outputs.loads.empty())
    if (auto done = write_file(outputs.loads, report::loads_table(*simulation)); !done) return done;
  if (!outputs.bindings.empty())
    return write_file(outputs.bindings, report::bindings_table(*simulation));
  return {};
}

void explain_by_plan(World& world, const std::function<Sequence()>& plan, report::Report& report) {
  const auto unexplained = std::find_if(report.findings.begin(), report.findings.end(),
                                        [](const Finding& one) { return one.code == "PY301"; });
  if (unexplained == report.findings.end()) return;
  const Sequence planned = plan();
  if (planned.plan->failure.empty()) return;
  report::Report said;
  if (!examine_sequence(world, planned, said)) return;
  const auto why = std::find_if(said.findings.begin(), said.findings.end(),
                                [](const Finding& one) { return one.code == "PY302"; });
  if (why == said.findings.end()) return;
  why->id = unexplained->id;
  why->evidence.push_back(
      {"observed", "the recorded run " + report.orders.back().ended, "", "", -1, -1, ""});
  *unexplained = std::move(*why);
}

void examine_orders(World& world, const ExaminedModules& modules,
                    const std::map<std::string, std::string>& environment, report::Report& report,
                    AboutEnvironment* about) {
  OrderPlans plans(world, environment);
  const Lanes lanes = plans.lanes();
  const auto orders = modules.orders();
  std::vector<std::optional<Judged>> judged(orders.size());
  Progress progress(orders.size());
  std::mutex of_progress;
  plans.for_each(
      orders,
      [&](size_t lane, size_t i) {
        ProcessTools& tools = *lanes[lane];
        {
          const std::lock_guard lock(of_progress);
          progress.step(fmt::format("import {}", fmt::join(orders[i], "; import ")));
        }
        if (orders[i].size() == 1) {
          const Sequence& alone = plans.alone(orders[i][0]);
          judged[i] = judge(world, tools, alone, *simulate(world, tools, alone));
        } else {
          const PlannedOrder planned = plans.plan(orders[i], tools);
          judged[i] = judge(world, tools, planned.sequence, *planned.simulation);
        }
      },
      about);
  if (about) about->add_to(report);
  for (std::optional<Judged>& one : judged) add_judged(world, std::move(*one), report);
}

std::vector<std::vector<std::string>> orders_of(const std::vector<std::string>& modules) {
  std::vector<std::vector<std::string>> orders;
  for (const std::string& module : modules) orders.push_back({module});
  for (const std::string& first : modules)
    for (const std::string& second : modules)
      if (first != second) orders.push_back({first, second});
  return orders;
}

void examine_environment(const World& world, report::Report& report, EnvironmentOptions options) {
  if (!world.python) return;
  const EnvironmentCase examined(world.tree, *world.python, world.distributions,
                                 std::move(options));
  for (Finding& finding : check_environment(examined))
    report.findings.push_back(std::move(finding));
  auto& unknowns = report.unknowns;
  for (const std::string& problem : world.python->problems) unknowns.push_back(problem);
  for (const std::string& problem : world.distributions.problems()) unknowns.push_back(problem);
}

AboutEnvironment::AboutEnvironment(const World& world, EnvironmentOptions options)
    : report_(std::async(std::launch::async | std::launch::deferred,
                         [&world, options = std::move(options)] {
                           report::Report report;
                           examine_environment(world, report, options);
                           return report;
                         })) {}

void AboutEnvironment::add_to(report::Report& report) {
  report::Report own = report_.get();
  std::move(own.findings.begin(), own.findings.end(), std::back_inserter(report.findings));
  std::move(own.unknowns.begin(), own.unknowns.end(), std::back_inserter(report.unknowns));
}

void number_findings(report::Report& report) {
  std::stable_sort(report.findings.begin(), report.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  std::unordered_map<std::string, std::string> ids;
  std::unordered_map<std::string, int> counts;
  const auto number = [&](Finding& finding) {
    std::string id = fmt::format("{}-{}", finding.code, ++counts[finding.code]);
    std::swap(id, finding.id);
    return id;
  };
  for (Finding& finding : report.findings) {
    const std::string old = number(finding);
    ids[old] = finding.id;
  }
  for (Suppressed& one : report.suppressed) number(one.finding);
  for (report::Order& order : report.orders) {
    for (std::string& id : order.findings) id = ids[id];
    std::erase(order.findings, "");  // suppressed
  }
}

}  // namespace cohabit
