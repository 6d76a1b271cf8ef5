// Plans of several modules in one process. Each module is planned once, alone; orders of them are
// joined from these plans (imports/join.h) where that is what a plan in full would be.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/examine.h"
#include "sim/simulation.h"

namespace cohabit {

// A sequence and its simulation, from its start to its end.
struct PlannedOrder {
  Sequence sequence;
  std::unique_ptr<sim::Simulation> simulation;
};

using Lanes = std::vector<ProcessTools*>;

class OrderPlans {
 public:
  // `environment`: the variables of the processes.
  OrderPlans(World& world, std::map<std::string, std::string> environment)
      : world_(world), environment_(std::move(environment)) {}

  // What works at the same time, each for a thread of its own; the world's own tools first.
  Lanes lanes();
  // Plans the modules of these orders, each alone, those that are not known yet; calls work(lane,
  // i) for each order, as soon as what it imports is planned. `besides`: may be null; goes on
  // meanwhile, and is waited for where it would take a processor from the longest plan.
  using Work = std::function<void(size_t lane, size_t order)>;
  void for_each(const std::vector<std::vector<std::string>>& orders, const Work& work,
                const AboutEnvironment* besides = nullptr);
  // What follows is of modules that are planned, and may be asked in all lanes.
  const Sequence& alone(const std::string& module) const { return alone_.at(module); }
  // Of two or more. `begun`: null, or a simulation of alone(modules[0]) by these tools, which then
  // goes on.
  PlannedOrder plan(const std::vector<std::string>& modules, ProcessTools& tools,
                    std::unique_ptr<sim::Simulation> begun = nullptr) const;

 private:
  class Queue;
  std::optional<Sequence> join(const std::vector<std::string>& modules, ProcessTools& tools) const;

  World& world_;
  std::deque<ProcessTools> more_tools_;
  std::map<std::string, std::string> environment_;
  std::map<std::string, Sequence> alone_;
};

// As the sequence went while it was planned with these tools; null: it was not, or that is taken.
std::unique_ptr<sim::Simulation> take_played(const ProcessTools& tools, const Sequence& sequence);
// A sequence from its start to its end.
std::unique_ptr<sim::Simulation> simulate(const World& world, ProcessTools& tools,
                                          const Sequence& sequence);

}  // namespace cohabit
