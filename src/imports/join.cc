#include "imports/join.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "imports/finder.h"
#include "imports/module_name.h"

namespace cohabit::python {
namespace {

using Names = std::vector<std::string>;  // sorted

bool has(const Names& names, std::string_view name) {
  return std::binary_search(names.begin(), names.end(), name);
}

// Follows the second program, leaving out what is loaded.
class Join {
 public:
  Join(const Plan& first, const Plan& second, Finder& finder, Joined kind)
      : first_(first), second_(second), finder_(finder), kind_(kind) {
    static_cast<PlannedRun&>(joined_.plan) = first;
  }

  std::optional<JoinedPlan> run() {
    for (const PlanEvent& event : second_.events)
      if (!step(event)) return std::nullopt;
    append_points();
    joined_.plan.failure = second_.failure;
    joined_.plan.failure_cause = second_.failure_cause;
    joined_.plan.failure_file = second_.failure_file;
    joined_.plan.failure_line = second_.failure_line;
    joined_.plan.failure_declared = second_.failure_declared;
    joined_.plan.failure_is_exit = second_.failure_is_exit;
    joined_.plan.importable = second_.importable;
    if (kind_ == Joined::kGoesOn) add_state();
    return std::move(joined_);
  }

 private:
  // False: the first program made a difference.
  bool step(const PlanEvent& event) {
    const bool is_module = event.kind == PlanEvent::kEnter || event.kind == PlanEvent::kLeave;
    if (is_module && (skipped_ > 0 || is_loaded(event))) {
      skipped_ += event.kind == PlanEvent::kEnter ? 1 : -1;
      return true;
    }
    if (skipped_ > 0) return true;
    switch (event.kind) {
      case PlanEvent::kEnter:
        joined_.plan.modules.share(second_.modules, event.index);
        return true;
      case PlanEvent::kLeave:
        return true;
      case PlanEvent::kOpen:
        joined_.plan.opens.push_back(second_.opens[event.index]);
        joined_.second_opens.push_back(event.index);
        return true;
      case PlanEvent::kMissing:
        return !has(first_.loaded, second_.sought[event.index]) &&
               !is_found_now(second_.sought[event.index]);
      case PlanEvent::kVariable:
        return !has(first_.variables_set, second_.sought[event.index]) &&
               !has(first_.variables_set, "");
    }
    return false;
  }

  bool is_loaded(const PlanEvent& event) const {
    return event.kind == PlanEvent::kEnter && has(first_.loaded, second_.modules[event.index].name);
  }

  bool is_found_now(std::string_view name) {
    return !first_.path_added.empty() && finder_.find(top_of(name), first_.path_added);
  }

  // What a third program would find.
  void add_state() {
    Plan& plan = joined_.plan;
    const auto both = [](const Names& a, const Names& b) {
      Names all;
      std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
      return all;
    };
    plan.loaded = both(first_.loaded, second_.loaded);
    plan.variables_set = both(first_.variables_set, second_.variables_set);
    plan.path_added = first_.path_added;
    plan.path_added.insert(plan.path_added.end(), second_.path_added.begin(),
                           second_.path_added.end());
    plan.changes_imports = first_.changes_imports || second_.changes_imports;
  }

  void append_points() {
    Plan& plan = joined_.plan;
    plan.undecided.insert(plan.undecided.end(), second_.undecided.begin(), second_.undecided.end());
    plan.raises.insert(plan.raises.end(), second_.raises.begin(), second_.raises.end());
    plan.problems.insert(plan.problems.end(), second_.problems.begin(), second_.problems.end());
  }

  const Plan& first_;
  const Plan& second_;
  Finder& finder_;
  const Joined kind_;
  JoinedPlan joined_;
  int skipped_ = 0;  // depth below the module that is loaded
};

}  // namespace

std::optional<JoinedPlan> join_plans(const Plan& first, const Plan& second, Finder& finder,
                                     Joined kind) {
  if (!first.failure.empty()) return JoinedPlan{first, {}};  // the second is never reached
  if (first.changes_imports) return std::nullopt;
  return Join(first, second, finder, kind).run();
}

}  // namespace cohabit::python
