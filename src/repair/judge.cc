#include "repair/judge.h"

#include <algorithm>
#include <initializer_list>

#include "findings/fingerprint.h"

namespace cohabit {
namespace {

sim::Options settings(const RepairFacts& facts, const Order& order) {
  sim::Options options;
  options.cache = &facts.bindings;
  options.constructors = order.plan ? facts.constructors : nullptr;
  return options;
}

bool starts_with_any(std::string_view code, std::initializer_list<std::string_view> prefixes) {
  for (const std::string_view prefix : prefixes)
    if (code.starts_with(prefix)) return true;
  return false;
}

}  // namespace

// By mechanism. Captured and split bindings come of scopes and of the order in which files are
// mapped. LD201, LD207: another file may be meant, which a path can name. LD204: the room for
// thread-local variables is a setting. A version or a function that the library does not have is
// the package's.
RepairClass repair_class(const Finding& finding) {
  if (starts_with_any(finding.code, {"CB", "LD201", "LD204", "LD207", "EV", "MM"}))
    return RepairClass::kLaunch;
  if (starts_with_any(finding.code,
                      {"LD202", "LD203", "LD205", "LD206", "FI", "IO", "PY0", "PY302"}))
    return RepairClass::kPackage;
  return RepairClass::kMachine;
}

std::string_view repair_class_name(RepairClass kind) {
  return kind == RepairClass::kLaunch    ? "launch"
         : kind == RepairClass::kPackage ? "package"
                                         : "machine";
}

bool is_latent_split(const Finding& finding) {
  return finding.severity == Severity::kWarning && finding.code == "CB105";
}

bool counts(const Finding& finding, bool latent) {
  return finding.severity == Severity::kError || (latent && is_latent_split(finding));
}

JudgedProcess::JudgedProcess(const RepairFacts& facts, const Order& order, const Repair& repair)
    : JudgedProcess(facts, order, apply(repair, order.trace), nullptr) {}

JudgedProcess::JudgedProcess(const RepairFacts& facts, Order& order)
    : JudgedProcess(facts, order, order.trace, std::move(order.simulation)) {}

JudgedProcess::JudgedProcess(const RepairFacts& facts, const Order& order, Trace trace,
                             std::unique_ptr<sim::Simulation> simulation)
    : distributions_(facts.distributions),
      images_(facts.images),
      machine_(facts.machine),
      counts_latent_(facts.counts_latent),
      trace_(std::move(trace)),
      simulation_(simulation ? std::move(simulation) : simulate(facts, order)),
      ownership_(own(facts, order.imports)),
      view_(*simulation_, ownership_, trace_.start.tracer, &facts.captures.runtimes),
      captures_(find_captures(view_, facts.captures)),
      findings_(check_all({view_, captures_, trace_, order.imports,
                           order.plan ? &*order.plan : nullptr, std::string(), &distributions_})) {}

std::unique_ptr<sim::Simulation> JudgedProcess::simulate(const RepairFacts& facts,
                                                         const Order& order) const {
  auto simulation = std::make_unique<sim::Simulation>(facts.images, facts.machine, trace_.start,
                                                      settings(facts, order));
  simulation->run(trace_.calls);
  return simulation;
}

Ownership JudgedProcess::own(const RepairFacts& facts,
                             const std::vector<std::string>& imports) const {
  const auto known = facts.ownerships.find(imports);
  if (known == facts.ownerships.end())
    return facts.ownerships[imports] = read_ownership(facts.tree, facts.distributions, *simulation_,
                                                      facts.asked_of(imports));
  find_owners(facts.tree, facts.distributions, *simulation_, known->second);
  return known->second;
}

Judgement judge(const JudgedProcess& process) {
  Judgement judgement;
  for (const Finding& finding : process.findings()) {
    if (!process.counts(finding)) continue;
    if (repair_class(finding) == RepairClass::kLaunch) {
      judgement.launch_errors.insert(cause_of(finding));
      judgement.weight += std::max<uint32_t>(finding.symbols.count, 1);
    } else {
      judgement.other_errors.insert(cause_of(finding));
    }
  }
  judgement.problems = process.simulation().problems();
  for (const sim::CallResult& result : process.simulation().results())
    judgement.failed.push_back(result.failed);
  judgement.obstacle = process.simulation().start_error();
  return judgement;
}

}  // namespace cohabit
