// Plans of several modules in one process. Each module is planned once, alone; orders of them are
// joined from these plans (imports/join.h) where that is what a plan in full would be.
#pragma once

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

class OrderPlans {
 public:
  // `environment`: the variables of the processes.
  OrderPlans(World& world, std::map<std::string, std::string> environment)
      : world_(world), environment_(std::move(environment)) {}

  // Of these modules, all that are not known yet.
  void plan_each(const std::vector<std::string>& modules);
  const Sequence& alone(const std::string& module);
  // Of two or more.
  PlannedOrder plan(const std::vector<std::string>& modules);

 private:
  std::optional<Sequence> join(const std::vector<std::string>& modules);

  World& world_;
  std::map<std::string, std::string> environment_;
  std::map<std::string, Sequence> alone_;
};

// A sequence from its start to its end.
std::unique_ptr<sim::Simulation> simulate(World& world, const Sequence& sequence);

}  // namespace cohabit
