// A changed process, simulated and judged by the rules of findings/.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/tree.h"
#include "facts/host/machine.h"
#include "facts/python/distributions.h"
#include "findings/rule.h"
#include "imports/plan.h"
#include "repair/repair.h"
#include "sim/binding_cache.h"
#include "sim/simulation.h"
#include "world/images.h"

namespace cohabit {

// What processes of one environment share that are judged by one thread; not owned.
struct RepairFacts {
  const Tree& tree;
  Images& images;
  const Machine& machine;
  const Distributions& distributions;
  sim::BindingCache& bindings;
  CaptureFacts& captures;
  std::map<std::vector<std::string>, Ownership>& ownerships;  // by imports, as they come
  sim::ConstructorOpens* constructors = nullptr;              // of planned processes
  std::function<Asked(const std::vector<std::string>& imports)> asked_of;
  // Latent splits count as errors: what is imported besides may use the split library.
  bool counts_latent = false;
};

// A process that imports these, as it was planned or recorded.
struct Order {
  std::vector<std::string> imports;
  Trace trace;
  std::optional<python::Plan> plan;
  std::unique_ptr<sim::Simulation> simulation;  // as it is, where planning it made one
  size_t lane = 0;  // in which it was judged first: what is known there makes the next time cheap
};

// Makes the plan of an order anew, with these variables of the loader (LD_*, GLIBC_TUNABLES): a
// library that can be opened now changes what the program does next. Null: there is no plan.
// `lane`: see search.h.
using Planner = std::function<Order(const Order& order, const Variables& environment, size_t lane)>;

// Who can clear a finding.
enum class RepairClass : uint8_t {
  kLaunch,   // how the process is started
  kPackage,  // the packages: nothing done at launch can help
  kMachine,  // the machine or what the user asked for
};
RepairClass repair_class(const Finding& finding);
std::string_view repair_class_name(RepairClass kind);

// CB105 as a warning: whatever comes next may step into it.
bool is_latent_split(const Finding& finding);
// An error; with `latent`, a split too that whatever comes next may step into.
bool counts(const Finding& finding, bool latent);

// One process with a repair applied. Keeps the simulation, so it is large: one at a time.
class JudgedProcess {
 public:
  JudgedProcess(const RepairFacts& facts, const Order& order, const Repair& repair);
  // As it is; takes its simulation.
  JudgedProcess(const RepairFacts& facts, Order& order);
  JudgedProcess(const JudgedProcess&) = delete;

  const sim::Simulation& simulation() const { return *simulation_; }
  const ProcessView& view() const { return view_; }
  const Captures& captures() const { return captures_; }
  const Trace& trace() const { return trace_; }
  const std::vector<Finding>& findings() const { return findings_; }
  // Of the environment.
  const Distributions& distributions() const { return distributions_; }
  ImageId open(const std::string& path) const {
    return images_.open(path, machine_.elf_machine).image;
  }
  // Whether it is to be cleared.
  bool counts(const Finding& finding) const { return cohabit::counts(finding, counts_latent_); }

 private:
  // `simulation`: null, or of this trace from its start to its end.
  JudgedProcess(const RepairFacts& facts, const Order& order, Trace trace,
                std::unique_ptr<sim::Simulation> simulation);
  std::unique_ptr<sim::Simulation> simulate(const RepairFacts& facts, const Order& order) const;
  Ownership own(const RepairFacts& facts, const std::vector<std::string>& imports) const;

  const Distributions& distributions_;
  Images& images_;
  const Machine& machine_;
  bool counts_latent_;
  Trace trace_;
  std::unique_ptr<sim::Simulation> simulation_;
  Ownership ownership_;
  ProcessView view_;
  Captures captures_;
  std::vector<Finding> findings_;
};

// What counts of it for the search.
struct Judgement {
  std::set<std::string> launch_errors;  // causes
  std::set<std::string> other_errors;
  uint64_t weight = 0;                // symbols that the launch errors are about
  std::vector<bool> failed;           // by call
  std::string obstacle;               // the process would not start, or not as it is meant
  std::vector<std::string> problems;  // what the simulation says, a preload that is ignored too
  bool clean() const { return launch_errors.empty() && obstacle.empty(); }
};
Judgement judge(const JudgedProcess& process);

}  // namespace cohabit
