#include "cli/order_plans.h"

#include <algorithm>

#include "imports/join.h"

namespace cohabit {
namespace {

// The plan of `first` and that of `second` as one; nothing if only planning both can tell.
std::optional<Sequence> join_sequences(World& world, const Sequence& first,
                                       const Sequence& second) {
  auto joined = python::join_plans(*first.plan, *second.plan, finder_of(world));
  if (!joined) return std::nullopt;
  Sequence sequence;
  sequence.imports = first.imports;
  sequence.imports.insert(sequence.imports.end(), second.imports.begin(), second.imports.end());
  sequence.trace = first.trace;
  for (const size_t open : joined->second_opens)
    sequence.trace.calls.push_back(second.trace.calls[open]);
  sequence.plan = std::move(joined->plan);
  return sequence;
}

// Whether the opens end as the plan supposed.
bool agrees(const sim::Simulation& simulation, const python::Plan& plan) {
  const auto& results = simulation.results();
  return std::equal(results.begin(), results.end(), plan.opens.begin(), plan.opens.end(),
                    [](const sim::CallResult& result, const python::PlannedOpen& open) {
                      return result.failed != open.error.empty();
                    });
}

}  // namespace

std::unique_ptr<sim::Simulation> simulate(World& world, const Sequence& sequence) {
  const bool failed = sequence.trace.exit_status.value_or(0) != 0;
  sim::Options settings;
  settings.keep_search_steps = failed || (sequence.plan && !sequence.plan->failure.empty());
  settings.cache = &world.bindings;
  if (sequence.plan && world.later) settings.constructors = &*world.later;
  auto simulation = std::make_unique<sim::Simulation>(world.images, world.machine,
                                                      sequence.trace.start, settings);
  simulation->run(sequence.trace.calls);
  return simulation;
}

void OrderPlans::plan_each(const std::vector<std::string>& modules) {
  std::vector<std::string> unknown;
  for (const std::string& module : modules)
    if (!alone_.contains(module)) unknown.push_back(module);
  std::vector<Sequence> planned = cohabit::plan_each(world_, unknown, environment_);
  for (size_t i = 0; i < unknown.size(); i++) alone_.emplace(unknown[i], std::move(planned[i]));
}

const Sequence& OrderPlans::alone(const std::string& module) {
  plan_each({module});
  return alone_.at(module);
}

// Nothing: it has to be planned in full.
std::optional<Sequence> OrderPlans::join(const std::vector<std::string>& modules) {
  plan_each(modules);
  std::optional<Sequence> joined;
  for (size_t i = 1; i < modules.size(); i++) {
    joined = join_sequences(world_, joined ? *joined : alone(modules[0]), alone(modules[i]));
    if (!joined) return std::nullopt;
  }
  return joined;
}

PlannedOrder OrderPlans::plan(const std::vector<std::string>& modules) {
  if (auto joined = join(modules)) {
    auto simulation = simulate(world_, *joined);
    if (agrees(*simulation, *joined->plan)) return {std::move(*joined), std::move(simulation)};
  }
  Sequence planned = plan_sequence(world_, modules, environment_);
  auto simulation = simulate(world_, planned);
  return {std::move(planned), std::move(simulation)};
}

}  // namespace cohabit
