#include "cli/order_plans.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <utility>

#include "base/together.h"
#include "imports/join.h"
#include "sim/planned_process.h"

namespace cohabit {
namespace {

// The plan of `first` and that of `second` as one; nothing if only planning both can tell.
std::optional<Sequence> join_sequences(python::Finder& finder, const Sequence& first,
                                       const Sequence& second, python::Joined kind) {
  auto joined = python::join_plans(*first.plan, *second.plan, finder, kind);
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
                    }) &&
         sim::has_as_planned(plan, simulation);
}

// Of these it is told where names were looked for.
bool has_failed(const Sequence& sequence) {
  return sequence.trace.exit_status.value_or(0) != 0 ||
         (sequence.plan && !sequence.plan->failure.empty());
}

// About how long the plan of a module takes against others: how much its distribution has. Where
// that is not told, nothing but time is lost.
uint64_t work_of(World& world, const std::string& module) {
  const auto spec = finder_of(world).find_top_level(module);
  if (!spec || !spec->is_package()) return 0;
  const std::string& directory = spec->search.front();
  uint64_t most = 0;
  for (const Distribution& one : world.distributions.all()) {
    const bool is_its = one.name == module || one.has_native_files_below(directory);
    const auto record = is_its ? world.tree.stat(one.metadata + "/RECORD")
                               : tl::expected<FileStatus, int>(FileStatus{});
    if (record) most = std::max(most, record->size);
  }
  return most;
}

// Those whose plans take longest first, about.
std::vector<std::string> longest_first(World& world, const std::vector<std::string>& modules) {
  if (modules.size() < 2) return modules;
  std::vector<std::pair<uint64_t, std::string>> ranked;
  for (const std::string& module : modules) ranked.emplace_back(work_of(world, module), module);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> sorted;
  for (auto& [work, module] : ranked) sorted.push_back(std::move(module));
  return sorted;
}

}  // namespace

std::unique_ptr<sim::Simulation> take_played(const ProcessTools& tools, const Sequence& sequence) {
  if (!sequence.played || sequence.played->tools != &tools) return nullptr;
  return std::move(sequence.played->simulation);
}

std::unique_ptr<sim::Simulation> simulate(const World& world, ProcessTools& tools,
                                          const Sequence& sequence) {
  sim::Options settings;
  settings.keep_search_steps = has_failed(sequence);
  if (!settings.keep_search_steps)
    if (auto played = take_played(tools, sequence)) return played;
  settings.cache = &tools.bindings;
  if (sequence.plan && tools.later) settings.constructors = &*tools.later;
  auto simulation = std::make_unique<sim::Simulation>(tools.images, world.machine,
                                                      sequence.trace.start, settings);
  simulation->run(sequence.trace.calls);
  return simulation;
}

Lanes OrderPlans::lanes() {
  // At the same time: a plan of TensorFlow takes 230 MB.
  constexpr size_t kMostLanes = 4;
  // What stands in for a driver is known to the world's images only.
  const size_t most = world_.machine.assumed.empty() ? std::min(processors(), kMostLanes) : 1;
  while (more_tools_.size() + 1 < most) {
    ProcessTools& tools = more_tools_.emplace_back(world_.tree);
    if (world_.later) tools.later.emplace(world_.later->afresh());
  }
  Lanes lanes = {&world_};
  for (size_t i = 0; i + 1 < most; i++) lanes.push_back(&more_tools_[i]);
  return lanes;
}

// Who does what: plans first, the longest by the world's own tools, which are those that most is
// done with; then the orders whose modules are planned.
class OrderPlans::Queue {
 public:
  Queue(std::vector<std::string> modules, const std::vector<std::vector<std::string>>& orders)
      : modules_(std::move(modules)),
        orders_(orders),
        waiting_(modules_.begin(), modules_.end()),
        taken_(orders.size()),
        left_(orders.size()) {}

  // Nothing: all are being planned. `longest`: the first of all, which nobody else is given.
  std::optional<std::string> next_module(bool longest) {
    if (longest && !modules_.empty()) return modules_[0];
    const size_t at = next_++;
    return at < modules_.size() ? std::optional(modules_[at]) : std::nullopt;
  }

  void is_planned(const std::string& module) {
    const std::lock_guard lock(mutex_);
    waiting_.erase(module);
    changed_.notify_all();
  }

  // Nobody waits any longer.
  void give_up() {
    const std::lock_guard lock(mutex_);
    left_ = 0;
    changed_.notify_all();
  }

  // Waits for one; nothing: all are taken.
  std::optional<size_t> next_order() {
    std::unique_lock lock(mutex_);
    while (left_ > 0) {
      for (size_t i = 0; i < orders_.size(); i++) {
        if (taken_[i] || !is_ready(orders_[i])) continue;
        taken_[i] = true;
        if (--left_ == 0) changed_.notify_all();
        return i;
      }
      changed_.wait(lock);
    }
    return std::nullopt;
  }

 private:
  bool is_ready(const std::vector<std::string>& order) const {
    return std::none_of(order.begin(), order.end(),
                        [&](const std::string& module) { return waiting_.contains(module); });
  }

  const std::vector<std::string> modules_;
  const std::vector<std::vector<std::string>>& orders_;
  std::atomic<size_t> next_{1};
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::set<std::string> waiting_;  // modules that are not planned
  std::vector<bool> taken_;
  size_t left_;
};

void OrderPlans::for_each(const std::vector<std::vector<std::string>>& orders, const Work& work,
                          const AboutEnvironment* besides) {
  std::vector<std::string> unknown;
  for (const std::vector<std::string>& order : orders)
    for (const std::string& module : order)
      if (alone_.try_emplace(module).second) unknown.push_back(module);
  const Lanes lanes = this->lanes();
  // Of these nothing is to be worked out but what judging needs as well.
  std::erase_if(unknown, [&](const std::string& module) {
    auto kept = kept_sequence(world_, *lanes[0], {module}, environment_);
    if (kept) alone_.at(module) = std::move(*kept);
    return kept.has_value();
  });
  Queue queue(longest_first(world_, unknown), orders);
  const auto work_in = [&](size_t lane) {
    bool longest = lane == 0;
    while (const auto module = queue.next_module(std::exchange(longest, false))) {
      alone_.at(*module) = plan_sequence(world_, *lanes[lane], {*module}, environment_);
      queue.is_planned(*module);
    }
    while (const auto order = queue.next_order()) work(lane, *order);
  };
  together(std::min(lanes.size(), std::max(orders.size(), unknown.size())), [&](size_t lane) {
    if (besides && lane > 0 && lane + 1 >= processors()) besides->wait();
    try {
      work_in(lane);
    } catch (...) {
      queue.give_up();
      throw;
    }
  });
  // Not before: it would take a processor from the judging.
  if (world_.kept) world_.kept->begin_saving();
}

// Nothing: it has to be planned in full.
std::optional<Sequence> OrderPlans::join(const std::vector<std::string>& modules,
                                         ProcessTools& tools) const {
  std::optional<Sequence> joined;
  for (size_t i = 1; i < modules.size(); i++) {
    const bool is_last = i + 1 == modules.size();
    joined = join_sequences(finder_of(world_, tools), joined ? *joined : alone(modules[0]),
                            alone(modules[i]),
                            is_last ? python::Joined::kEnds : python::Joined::kGoesOn);
    if (!joined) return std::nullopt;
  }
  return joined;
}

PlannedOrder OrderPlans::plan(const std::vector<std::string>& modules, ProcessTools& tools,
                              std::unique_ptr<sim::Simulation> begun) const {
  if (auto joined = join(modules, tools)) {
    // It begins as the first module's own.
    if (begun && !has_failed(*joined) && !has_failed(alone(modules[0])))
      begun->go_on(joined->trace.calls);
    else
      begun = simulate(world_, tools, *joined);
    if (agrees(*begun, *joined->plan)) return {std::move(*joined), std::move(begun)};
  }
  Sequence planned = plan_sequence(world_, tools, modules, environment_);
  auto simulation = simulate(world_, tools, planned);
  return {std::move(planned), std::move(simulation)};
}

}  // namespace cohabit
