#include "cli/repairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "cli/arguments.h"
#include "cli/asked_modules.h"
#include "cli/lasting.h"
#include "cli/loaded_files.h"
#include "cli/order_plans.h"
#include "facts/trace/recorded_machine.h"
#include "findings/fingerprint.h"

namespace cohabit {
namespace {

// All orders of a few modules; of many, each one first, and the reverse.
std::vector<std::vector<std::string>> other_orders(const std::vector<std::string>& imports) {
  constexpr size_t kFew = 3;
  std::vector<std::vector<std::string>> orders;
  const auto add = [&](const std::vector<std::string>& order) {
    if (order != imports && std::find(orders.begin(), orders.end(), order) == orders.end())
      orders.push_back(order);
  };
  if (imports.size() <= kFew) {
    std::vector<std::string> order = imports;
    std::sort(order.begin(), order.end());
    do {
      add(order);
    } while (std::next_permutation(order.begin(), order.end()));
    return orders;
  }
  add({imports.rbegin(), imports.rend()});
  for (size_t first = 1; first < imports.size(); first++) {
    std::vector<std::string> order = imports;
    std::rotate(order.begin(), order.begin() + static_cast<ptrdiff_t>(first),
                order.begin() + static_cast<ptrdiff_t>(first) + 1);
    add(order);
  }
  return orders;
}

// One search: the environment, its orders, and how they are planned.
class RepairCase {
 public:
  RepairCase(const RepairRequest& request, const Tree& tree)
      : request_(request),
        lasting_(tree),
        variables_(own_variables(request.root)),
        plans_(world_, variables_) {}

  Result<void> prepare();
  report::RepairReport run();

 private:
  Result<void> read_replay();
  Order plan(const python::PlanRequest& wanted, const std::vector<std::string>& imports,
             ProcessTools& tools);
  Order plan_imports(const std::vector<std::string>& imports, ProcessTools& tools);
  void plan_all();
  SearchResult search();
  bool has_only_latent(const SearchResult& result) const;
  RepairFacts facts(ProcessTools& tools) {
    return {world_.tree,
            tools.images,
            world_.machine,
            world_.distributions,
            tools.bindings,
            tools.captures,
            tools.ownerships,
            tools.later ? &*tools.later : nullptr,
            [this, &tools](const std::vector<std::string>& imports) {
              return what_is_asked(world_, tools, imports);
            },
            counts_latent_};
  }
  std::string keep(const Finding& finding, report::RepairReport& report);
  void add_environment_findings(const SearchResult& result, report::RepairReport& report);
  void add_findings(const SearchResult& result, report::RepairReport& report);
  void add_repairs(const SearchResult& result, report::RepairReport& report);
  void add_package_repairs(report::RepairReport& report) const;
  void describe_program(report::RepairReport& report) const;
  std::vector<std::string> ids_of(const std::vector<std::string>& causes) const;

  const RepairRequest& request_;
  Lasting<World> lasting_;
  World& world_ = *lasting_;
  std::map<std::string, std::string> variables_;
  OrderPlans plans_;
  std::optional<AboutEnvironment> about_;  // nothing: nobody asked
  std::vector<Order> orders_;
  MoreOrders more_;
  std::string unpaired_;  // what was looked at alone; empty: nothing
  size_t asked_ = 0;      // the first of them
  size_t planned_ = 0;    // before the search, which adds others
  bool counts_latent_ = false;
  std::unordered_map<std::string, std::string> ids_;  // by cause
  std::unordered_map<std::string, int> counts_;       // by code
};

Result<void> RepairCase::read_replay() {
  auto trace = read_trace_file(request_.replay);
  if (!trace) return tl::unexpected<Error>(trace.error());
  // A trace may be of a program that is no Python, or of an environment that is gone.
  (void)find_environment(
      world_, request_.environment.empty() ? trace->start.program : request_.environment);
  world_.machine = recorded_machine(world_.tree, trace->start);
  orders_.push_back({request_.imports, std::move(*trace), std::nullopt, nullptr});
  asked_ = 1;
  return {};
}

Order RepairCase::plan(const python::PlanRequest& wanted, const std::vector<std::string>& imports,
                       ProcessTools& tools) {
  Sequence planned = plan_request(world_, tools, wanted);
  auto simulation = take_played(tools, planned);
  return {imports, std::move(planned.trace), std::move(planned.plan), std::move(simulation)};
}

Order RepairCase::plan_imports(const std::vector<std::string>& imports, ProcessTools& tools) {
  if (imports.size() == 1) {
    const Sequence& planned = plans_.alone(imports[0]);
    return {imports, planned.trace, planned.plan, take_played(tools, planned)};
  }
  PlannedOrder planned = plans_.plan(imports, tools);
  return {imports, std::move(planned.sequence.trace), std::move(planned.sequence.plan),
          std::move(planned.simulation)};
}

void RepairCase::plan_all() {
  if (request_.program) {
    python::PlanRequest wanted = *request_.program;
    wanted.environment = variables_;
    orders_.push_back(plan(wanted, {}, world_));
    asked_ = 1;
    return;
  }
  if (!request_.imports.empty()) {
    plans_.for_each({request_.imports}, [](size_t, size_t) {}, about_ ? &*about_ : nullptr);
    orders_.push_back(plan_imports(request_.imports, world_));
    asked_ = 1;
    return;
  }
  const ExaminedModules modules = request_.with.empty() ? find_examined_modules(world_)
                                                        : ExaminedModules{request_.with, {}, {}};
  more_.asked = modules.orders();
  unpaired_ = modules.unpaired();
  asked_ = more_.asked.size();
}

Result<void> RepairCase::prepare() {
  if (!request_.replay.empty()) return read_replay();
  const bool uses_kept = request_.cache && request_.root.empty();
  if (auto found = find_environment(world_, request_.environment,
                                    PythonVariables::from_environment(), uses_kept);
      !found)
    return found;
  world_.machine =
      read_machine(world_.tree, world_.python->elf_machine, "", world_.python->elf_interpreter);
  EnvironmentOptions about;
  about.variables = variables_;
  if (request_.effects) about_.emplace(world_, std::move(about));
  if (!request_.imports.empty() || !request_.with.empty())
    world_.first_directory = directory_of_imports(world_.tree, PythonVariables::from_environment());
  if (uses_kept) world_.kept = KeptPlans::open(*world_.python, world_.distributions);
  ready(world_);
  plan_all();
  planned_ = orders_.size();
  return {};
}

SearchResult RepairCase::search() {
  const Lanes lanes = plans_.lanes();
  std::vector<RepairFacts> facts_of_lanes;
  for (ProcessTools* tools : lanes) facts_of_lanes.push_back(facts(*tools));
  if (!request_.replay.empty()) return search_repairs(facts_of_lanes, orders_, {}, {});
  const Planner planner = [&](const Order& order, const Variables& environment, size_t lane) {
    python::PlanRequest wanted = request_.program.value_or(python::PlanRequest());
    wanted.imports = order.imports;
    if (!request_.program) wanted.directory = world_.first_directory;
    wanted.environment = variables_;
    for (const auto& [name, value] : environment) wanted.environment[name] = value;
    return plan(wanted, order.imports, *lanes[lane]);
  };
  if (request_.program) return search_repairs(facts_of_lanes, orders_, {}, planner);
  more_.plan = [&](const std::vector<std::string>& imports, size_t lane) {
    return plan_imports(imports, *lanes[lane]);
  };
  more_.for_each = [&](const std::vector<std::vector<std::string>>& orders,
                       const MoreOrders::Work& work) {
    plans_.for_each(orders, work, about_ ? &*about_ : nullptr);
  };
  if (asked_ == 1) {
    more_.others = other_orders(request_.imports);
    for (const std::string& module : request_.imports)
      if (request_.imports.size() > 1) more_.alone.push_back({module});
  }
  return search_repairs(facts_of_lanes, orders_, more_, planner);
}

// Keeps what is to be cleared, each cause once; gives its id.
std::string RepairCase::keep(const Finding& finding, report::RepairReport& report) {
  const auto [known, fresh] = ids_.try_emplace(cause_of(finding));
  if (fresh) {
    known->second = fmt::format("{}-{}", finding.code, ++counts_[finding.code]);
    report.findings.push_back(finding);
    report.findings.back().id = known->second;
    report.finding_classes.emplace_back(repair_class_name(repair_class(finding)));
  }
  return known->second;
}

// What files and metadata alone say: nothing that a launch could clear. An order that loads what is
// broken is not sound; what none of them loads is no error of theirs.
void RepairCase::add_environment_findings(const SearchResult& result,
                                          report::RepairReport& report) {
  if (!about_) return;
  report::Report environment;
  about_->add_to(environment);
  for (size_t at = 0; at < report.orders.size(); at++) {
    const LoadedFiles loaded = loaded_files(orders_[at].plan, result.mapped[at]);
    report::Order& order = environment.orders.emplace_back();
    order.imports = orders_[at].imports;
    order.program = request_.title;
    note_broken(loaded, orders_[at].plan, environment, order);
    note_reach(world_, loaded, environment);
  }
  soften_what_is_not_loaded(environment);
  for (const Finding& finding : environment.findings) {
    if (finding.severity != Severity::kError) continue;
    const std::string id = keep(finding, report);
    for (size_t at = 0; at < report.orders.size(); at++) {
      const std::vector<std::string>& broken = environment.orders[at].findings;
      if (std::find(broken.begin(), broken.end(), finding.id) == broken.end()) continue;
      report.orders[at].findings.push_back(id);
      report.orders[at].verdict = "unsound";
    }
  }
  for (std::string& unknown : environment.unknowns)
    if (std::find(report.unknowns.begin(), report.unknowns.end(), unknown) == report.unknowns.end())
      report.unknowns.push_back(std::move(unknown));
}

// What is to be cleared, each cause once, in the words of the first order that has it.
void RepairCase::add_findings(const SearchResult& result, report::RepairReport& report) {
  for (size_t at = 0; at < asked_; at++) {
    report::Order order;
    order.imports = orders_[at].imports;
    // A latent split hurts no import that was asked for.
    const bool is_sound =
        counts_latent_ || (result.before[at].clean() && result.before[at].other_errors.empty());
    order.verdict = is_sound ? "sound" : "unsound";
    for (const Finding& finding : result.findings[at]) {
      if (!counts(finding, counts_latent_)) continue;
      order.findings.push_back(keep(finding, report));
    }
    report.orders.push_back(std::move(order));
  }
}

std::vector<std::string> RepairCase::ids_of(const std::vector<std::string>& causes) const {
  std::vector<std::string> ids;
  for (const std::string& cause : causes)
    if (const auto known = ids_.find(cause); known != ids_.end()) ids.push_back(known->second);
  std::sort(ids.begin(), ids.end());
  return ids;
}

void RepairCase::add_repairs(const SearchResult& result, report::RepairReport& report) {
  const auto unsound = static_cast<size_t>(
      std::find_if(result.before.begin(), result.before.end(),
                   [](const Judgement& judgement) { return !judgement.clean(); }) -
      result.before.begin());
  std::optional<JudgedProcess> before;  // large, and the same for all of them
  const auto facts_of = [&](const Order& order) { return facts(*plans_.lanes()[order.lane]); };
  for (const FoundRepair& found : result.repairs) {
    report::RepairRow row;
    row.repair = found.repair;
    row.every_order = found.every_order;
    row.clears = ids_of(found.clears);
    row.leaves = ids_of(found.leaves);
    if (request_.effects && found.repair.launches() && unsound < orders_.size()) {
      if (!before) before.emplace(facts_of(orders_[unsound]), orders_[unsound], Repair());
      const JudgedProcess after(facts_of(orders_[unsound]), orders_[unsound], found.repair);
      row.effects = compute_effects(*before, after, found.repair);
    }
    report.repairs.push_back(std::move(row));
  }
}

// The way for what no launch can clear; one way may be that of several findings.
void RepairCase::add_package_repairs(report::RepairReport& report) const {
  for (size_t i = 0; i < report.findings.size(); i++) {
    if (report.finding_classes[i] == "launch" || report.findings[i].help.empty()) continue;
    const Help& help = report.findings[i].help.front();
    Repair way;
    way.package = help.command.empty() ? help.text : help.command;
    const auto known =
        std::find_if(report.repairs.begin(), report.repairs.end(),
                     [&](const report::RepairRow& row) { return row.repair == way; });
    report::RepairRow& row = known == report.repairs.end() ? report.repairs.emplace_back() : *known;
    row.repair = std::move(way);
    row.clears.push_back(report.findings[i].id);
  }
}

void RepairCase::describe_program(report::RepairReport& report) const {
  if (orders_.empty() || !orders_[0].plan) return;
  report.failure = orders_[0].plan->failure;
  if (request_.program) {
    LaterImports later = find_later_imports(world_, *request_.program, *orders_[0].plan);
    report.later_imports = std::move(later.modules);
    report.named_imports = std::move(later.named);
    report.imports_are_open = later.are_open;
    report.gives_environment = later.gives_environment;
  }
  const auto frameworks = find_frameworks(world_);
  for (const python::PlannedModule& module : orders_[0].plan->modules)
    if (std::find(frameworks.begin(), frameworks.end(), module.name) != frameworks.end())
      report.meets_framework = true;
}

// Who asks about imports will import more, and call something: doctor warns of what that steps
// into.
bool RepairCase::has_only_latent(const SearchResult& result) const {
  if (!request_.replay.empty() || request_.program) return false;
  bool has_latent = false;
  for (size_t at = 0; at < asked_; at++)
    for (const Finding& finding : result.findings[at]) {
      if (counts(finding, false)) return false;
      has_latent |= counts(finding, true);
    }
  return has_latent;
}

report::RepairReport RepairCase::run() {
  SearchResult result = search();
  if (has_only_latent(result)) {
    counts_latent_ = true;
    orders_.erase(orders_.begin() + static_cast<ptrdiff_t>(planned_), orders_.end());
    result = search();
  }
  save_kept(world_);
  report::RepairReport report;
  report.environment = world_.python ? world_.python->prefix : "";
  report.python = world_.python ? world_.python->version : "";
  report.program = orders_.empty() ? "" : orders_[0].trace.start.program;
  report.title = request_.title.empty() ? report.program : request_.title;
  report.simulations = result.judged;
  add_findings(result, report);
  add_environment_findings(result, report);
  add_repairs(result, report);
  add_package_repairs(report);
  describe_program(report);
  report.unpaired = unpaired_;
  if (!unpaired_.empty()) report.unknowns.push_back(unpaired_);
  for (const Order& order : orders_)
    if (order.plan)
      for (const std::string& problem : order.plan->problems)
        if (std::find(report.unknowns.begin(), report.unknowns.end(), problem) ==
            report.unknowns.end())
          report.unknowns.push_back(problem);
  return report;
}

}  // namespace

Result<report::RepairReport> find_repairs(const RepairRequest& request) {
  KnownWords words;
  Tree tree(request.root);
  if (request.cache && request.root.empty()) tree.set_words(&words);
  if (auto good = tree.check_root(); !good) return tl::unexpected<Error>(good.error());
  RepairCase repair_case(request, tree);
  if (auto ready = repair_case.prepare(); !ready) return tl::unexpected<Error>(ready.error());
  return repair_case.run();
}

}  // namespace cohabit
