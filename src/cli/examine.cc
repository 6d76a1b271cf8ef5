#include "cli/examine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <future>
#include <iterator>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "base/not_in_bundle.h"
#include "base/together.h"
#include "base/write_file.h"
#include "cli/failure_causes.h"
#include "cli/loaded_files.h"
#include "cli/order_plans.h"
#include "cli/progress.h"
#include "findings/environment.h"
#include "findings/fingerprint.h"
#include "findings/rule.h"
#include "report/orders.h"
#include "report/tsv.h"
#include "sim/mapped_files.h"
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

// How the simulation of a process went; needs it no longer.
struct Outcome {
  std::vector<std::string> mapped;
  LoadedFiles loaded;  // points into these
  bool has_started = false;
  std::vector<std::string> problems;
};

Outcome outcome_of(const Sequence& sequence, const sim::Simulation& simulation) {
  Outcome outcome;
  const auto mapped = sim::mapped_files(simulation);
  outcome.mapped.assign(mapped.begin(), mapped.end());
  outcome.loaded = loaded_files(sequence.plan, outcome.mapped);
  outcome.has_started = simulation.start_error().empty();
  outcome.problems = simulation.problems();
  return outcome;
}

std::string verdict(const report::Order& order, const Outcome& outcome) {
  if (!order.phase.empty()) return "unsound";
  return outcome.has_started && outcome.problems.empty() ? "sound" : "unknown";
}

// Whether an import fails on a branch that only a running program decides about.
bool may_fail(const python::Plan& plan) {
  return std::any_of(plan.undecided.begin(), plan.undecided.end(),
                     [](const python::Undecided& point) { return point.may_fail; });
}

std::string text_of(const python::Undecided& point) {
  return fmt::format("only a running program decides: {} at {}:{}", point.what, point.file,
                     point.line);
}

// Those that make an order's verdict unknown, before everything else that is not known.
void add_deciding_points(const python::Plan& plan, const std::string& statement,
                         report::Report& report) {
  std::vector<std::string>& all = report.unknowns;
  std::vector<std::string> fresh;
  for (const std::string& problem : plan.problems)
    if (std::find(all.begin(), all.end(), problem) == all.end()) fresh.push_back(problem);
  for (const python::Undecided& point : plan.undecided) {
    if (!point.may_fail) continue;
    const std::string text = text_of(point);
    const auto is_it = [&](const std::string& other) { return other.starts_with(text + ";"); };
    if (std::none_of(all.begin(), all.end(), is_it))
      fresh.push_back(fmt::format("{}; `{}` may fail there", text, statement));
  }
  all.insert(all.begin(), fresh.begin(), fresh.end());
}

// Points that are the same for several orders are told once.
void add_unknowns(const Machine& machine, const Sequence& sequence, const Outcome& outcome,
                  report::Report& report) {
  std::unordered_set<std::string> known(report.unknowns.begin(), report.unknowns.end());
  const auto add = [&](const std::string& text) {
    if (known.insert(text).second) report.unknowns.push_back(text);
  };
  for (const std::string& problem : machine.problems) add(problem);
  for (const std::string& problem : outcome.problems) add(problem);
  for (const std::string& spot : sequence.trace.blind_spots) add(spot);
  if (!sequence.plan) return;
  size_t points = 0;
  for (const python::Undecided& point : sequence.plan->undecided)
    if (!point.may_fail && points++ < kMostPoints) add(text_of(point));
  if (points > kMostPoints)
    add(fmt::format("and {} more point{} that only a running program decides", points - kMostPoints,
                    points - kMostPoints == 1 ? "" : "s"));
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

// Whether something of this process is not in the bundle: what follows from it would be a guess.
// The bundle tells what it lacks.
bool lacks_files(const sim::Simulation& simulation) {
  const auto& results = simulation.results();
  if (std::any_of(results.begin(), results.end(), [](const sim::CallResult& result) {
        return result.error.find(kNotInBundleText) != std::string::npos;
      }))
    return true;
  const auto& objects = simulation.objects();
  return std::any_of(objects.begin(), objects.end(), [&](const sim::Object& object) {
    return object.image != kNone && simulation.images()[object.image].map.damaged();
  });
}

// What comes of the opens after the imports, phase by phase. What was there before and only grows
// is not told again. `imported`: who owns the objects of the imports.
void judge_later(World& world, const Sequence& sequence, sim::Simulation& simulation,
                 const Ownership& imported, std::vector<Finding> earlier, OrderFindings& findings) {
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
    const auto opens = world.later->play(phase, simulation, trace.calls, is_asked);
    if (opens.empty()) continue;
    const Ownership ownership = read_ownership(world.tree, world.distributions, simulation,
                                               what_is_asked(world, sequence.imports));
    const ProcessView process(simulation, ownership, trace.start.tracer, &world.captures.runtimes);
    const Captures captures = find_captures(process, world.captures);
    std::vector<Finding> found =
        check_all({process, captures, trace, sequence.imports, nullptr, sequence.program,
                   &world.distributions, phase, &opens, &*world.later});
    if (is_of_bundle(world.tree) && lacks_files(simulation)) return;
    for (Finding& finding : found) {
      if (std::any_of(earlier.begin(), earlier.end(),
                      [&](const Finding& known) { return goes_on(finding, known); }))
        continue;
      earlier.push_back(finding);
      findings.add(std::move(finding));
    }
  }
}

bool has_later_phases(const World& world, const Sequence& sequence) {
  return sequence.plan && sequence.plan->failure.empty() && world.later && world.later->has_gpu();
}

// What comes of a process's imports.
struct Judgement {
  Ownership ownership;
  std::vector<Finding> findings;
  Outcome outcome;
};

// On any thread: other processes may be simulated, and judged by other facts, meanwhile.
Judgement judge_imports(const World& world, CaptureFacts& facts, const Sequence& sequence,
                        const sim::Simulation& simulation, Asked asked) {
  const auto held = world.images.hold();
  Judgement judgement;
  judgement.ownership =
      read_ownership(world.tree, world.distributions, simulation, std::move(asked));
  const ProcessView process(simulation, judgement.ownership, sequence.trace.start.tracer,
                            &facts.runtimes);
  const Captures captures = find_captures(process, facts);
  const python::Plan* plan = sequence.plan ? &*sequence.plan : nullptr;
  judgement.findings = check_all({process, captures, sequence.trace, sequence.imports, plan,
                                  sequence.program, &world.distributions});
  if (is_of_bundle(world.tree) && lacks_files(simulation)) judgement.findings.clear();
  judgement.outcome = outcome_of(sequence, simulation);
  return judgement;
}

// Goes on with what comes after the imports, for which the simulation is wanted.
void add_judgement(World& world, const Sequence& sequence, sim::Simulation* simulation,
                   Judgement judgement, report::Report& report) {
  const Trace& trace = sequence.trace;
  report::Order order;
  order.imports = sequence.imports;
  order.program = sequence.program;
  order.ended = ending(trace);
  OrderFindings of_order(report, order);
  for (Finding finding : judgement.findings) {
    if (sequence.plan) explain_failure(world, *sequence.plan, report.findings, finding);
    of_order.add(std::move(finding));
  }
  Outcome& outcome = judgement.outcome;
  note_broken(outcome.loaded, sequence.plan, report, order);
  if (has_later_phases(world, sequence)) {
    judge_later(world, sequence, *simulation, judgement.ownership, std::move(judgement.findings),
                of_order);
    outcome = outcome_of(sequence, *simulation);
  }
  note_reach(world, outcome.loaded, report);
  order.verdict = verdict(order, outcome);
  if (order.verdict == "sound" && sequence.plan &&
      (may_fail(*sequence.plan) || !sequence.plan->problems.empty()))
    order.verdict = "unknown";
  if (!sequence.plan && !trace.exit_status) {
    report.unknowns.push_back(
        "the recording does not say how the process ended: it may be cut off, and calls may be "
        "missing at its end");
    if (order.verdict == "sound") order.verdict = "unknown";
  }
  report.orders.push_back(std::move(order));
  if (sequence.plan)
    add_deciding_points(*sequence.plan, report::statement(sequence.program, sequence.imports),
                        report);
  add_unknowns(world.machine, sequence, outcome, report);
}

// What is remembered of files by those that judge at the same time: each its own, but for who
// defines what, which takes long to find and is asked for once in a library. What the rest saves
// them is far less than waiting for one another would cost.
class FactsOfJudges {
 public:
  explicit FactsOfJudges(World& world) {
    constexpr size_t kMost = 2;
    while (free_.size() + 1 < std::min(processors(), kMost))
      free_.push_back(&more_.emplace_back(world.images, world.captures.definers));
    // Taken first: what comes after the imports is judged by them.
    free_.push_back(&world.captures);
  }

  // Waits until some are free.
  template <class Judge>
  auto with(const Judge& judge) {
    const Held held(*this);
    return judge(held.facts);
  }

 private:
  struct Held {
    explicit Held(FactsOfJudges& of) : all(of), facts(of.take()) {}
    Held(const Held&) = delete;
    ~Held() { all.give_back(facts); }
    FactsOfJudges& all;
    CaptureFacts& facts;
  };

  CaptureFacts& take() {
    std::unique_lock lock(mutex_);
    is_free_.wait(lock, [this] { return !free_.empty(); });
    CaptureFacts& facts = *free_.back();
    free_.pop_back();
    return facts;
  }

  void give_back(CaptureFacts& facts) {
    const std::lock_guard lock(mutex_);
    free_.push_back(&facts);
    is_free_.notify_one();
  }

  std::deque<CaptureFacts> more_;
  std::mutex mutex_;  // of what follows
  std::condition_variable is_free_;
  std::vector<CaptureFacts*> free_;
};

// Judges processes on other cores, while those that follow are simulated.
class JudgedInTurn {
 public:
  // `about`: may be null; is added to the report before the first judgement is.
  JudgedInTurn(World& world, report::Report& report, AboutEnvironment* about)
      : world_(world), report_(report), about_(about), facts_(world) {}

  // `elsewhere`: null, or a sequence to be taken in place of the one in `planned`.
  void add(PlannedOrder planned, const Sequence* elsewhere = nullptr) {
    Turn& turn = turns_.emplace_back();
    turn.planned = std::move(planned);
    turn.sequence = elsewhere ? elsewhere : &turn.planned.sequence;
    // What comes after the imports is opened and judged in this thread.
    const bool goes_on = has_later_phases(world_, *turn.sequence);
    turn.judging = std::async(
        std::launch::async | std::launch::deferred,
        [this, &turn, goes_on, asked = what_is_asked(world_, turn.sequence->imports)] {
          Judgement judgement = facts_.with([&](CaptureFacts& facts) {
            return judge_imports(world_, facts, *turn.sequence, *turn.planned.simulation, asked);
          });
          if (!goes_on) turn.planned.simulation.reset();
          return judgement;
        });
    while (turns_.size() > (goes_on ? 0 : kMostWaiting)) finish_one();
  }

  void finish() {
    add_about();
    while (!turns_.empty()) finish_one();
  }

 private:
  // Each has a simulation, some 30 MB of a large process.
  static constexpr size_t kMostWaiting = 3;
  struct Turn {
    PlannedOrder planned;
    const Sequence* sequence = nullptr;
    std::future<Judgement> judging;  // last, so that it ends first
  };

  // Adds the oldest to the report.
  void finish_one() {
    add_about();
    Turn& turn = turns_.front();
    Judgement judgement = turn.judging.get();
    add_judgement(world_, *turn.sequence, turn.planned.simulation.get(), std::move(judgement),
                  report_);
    turns_.pop_front();
  }

  void add_about() {
    if (AboutEnvironment* about = std::exchange(about_, nullptr)) about->add_to(report_);
  }

  World& world_;
  report::Report& report_;
  AboutEnvironment* about_;
  FactsOfJudges facts_;
  std::deque<Turn> turns_;
};

}  // namespace

Result<void> examine_sequence(World& world, const Sequence& sequence, report::Report& report,
                              const SequenceOutputs& outputs) {
  const auto simulation = simulate(world, world, sequence);
  Judgement judgement = judge_imports(world, world.captures, sequence, *simulation,
                                      what_is_asked(world, sequence.imports));
  add_judgement(world, sequence, simulation.get(), std::move(judgement), report);
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
                    Progress& progress, AboutEnvironment* about) {
  OrderPlans plans(world, environment);
  const auto orders = modules.orders();
  const std::vector<std::string> all = modules.all();
  progress.expect(1 + orders.size() - all.size());
  progress.step(fmt::format("import each of {}", fmt::join(all, ", ")));
  plans.for_each({all}, [](size_t, size_t) {}, about);
  // New files wait until nothing is judged: those of the first few are read before that.
  constexpr size_t kReadAhead = 3;
  std::deque<std::unique_ptr<sim::Simulation>> ahead;
  for (size_t i = 0; i < orders.size() && orders[i].size() == 1 && i < kReadAhead; i++)
    ahead.push_back(simulate(world, world, plans.alone(orders[i][0])));
  std::map<std::string, std::unique_ptr<sim::Simulation>> begun;  // by what pairs begin with
  JudgedInTurn judged(world, report, about);
  for (size_t i = 0; i < orders.size(); i++) {
    const std::vector<std::string>& order = orders[i];
    if (order.size() > 1) {
      progress.step(fmt::format("import {}", fmt::join(order, "; import ")));
      const bool is_last = i + 1 == orders.size() || orders[i + 1][0] != order[0];
      auto& first = begun[order[0]];
      judged.add(plans.plan(order, world, is_last || !first ? std::move(first) : first->copy()));
      continue;
    }
    const Sequence& alone = plans.alone(order[0]);
    if (ahead.empty()) ahead.push_back(simulate(world, world, alone));
    const bool begins_pairs = i < modules.paired.size() && modules.paired.size() > 1;
    if (begins_pairs && alone.plan->failure.empty()) begun[order[0]] = ahead.front()->copy();
    judged.add({{}, std::move(ahead.front())}, &alone);
    ahead.pop_front();
  }
  judged.finish();
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
