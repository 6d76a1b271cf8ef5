// Plans that are joined again: what the first two have changed stands in the way of a third.
#include <doctest/doctest.h>

#include "imports/finder.h"
#include "imports/join.h"
#include "temp_tree.h"

namespace cohabit::python {
namespace {

Plan plan_of(const std::string& module) {
  Plan plan;
  plan.modules.push_back({module, ModuleKind::kSource, "/" + module + ".py", "", 0});
  plan.loaded = {module};
  plan.events = {{PlanEvent::kEnter, 0}, {PlanEvent::kLeave, 0}};
  return plan;
}

Plan asking(const std::string& module, PlanEvent::Kind kind, const std::string& name) {
  Plan plan = plan_of(module);
  plan.sought = {name};
  plan.events.insert(plan.events.begin() + 1, {kind, 0});
  return plan;
}

std::vector<std::string> names(const Plan& plan) {
  std::vector<std::string> result;
  for (const PlannedModule& module : plan.modules) result.push_back(module.name);
  return result;
}

}  // namespace

TEST_CASE("three plans are joined as two and one") {
  const Interpreter interpreter;
  const Tree tree;
  Finder finder(tree, interpreter);
  const auto join = [&](const Plan& first, const Plan& second) {
    return join_plans(first, second, finder, Joined::kGoesOn);
  };
  const Plan a = plan_of("a"), b = plan_of("b");

  SUBCASE("what both have loaded is not loaded again") {
    Plan both = plan_of("c");
    for (const char* name : {"a", "b"}) {
      both.modules.push_back({name, ModuleKind::kSource, "", "c", 1});
      const auto index = static_cast<uint32_t>(both.modules.size() - 1);
      both.events.insert(both.events.end() - 1,
                         {{PlanEvent::kEnter, index}, {PlanEvent::kLeave, index}});
    }
    const auto joined = join(join(a, b)->plan, both);
    REQUIRE(joined);
    CHECK(names(joined->plan) == std::vector<std::string>{"a", "b", "c"});
    const auto last = join_plans(join(a, b)->plan, both, finder, Joined::kEnds);
    REQUIRE(last);
    CHECK(names(last->plan) == names(joined->plan));
    CHECK(last->plan.loaded.empty());
  }
  SUBCASE("the third asked for a module that the second brings") {
    const Plan asks = asking("c", PlanEvent::kMissing, "b");
    CHECK(join(a, asks));
    CHECK_FALSE(join(join(a, b)->plan, asks));
  }
  SUBCASE("the third asks for a variable that the second has set") {
    Plan sets = b;
    sets.variables_set = {"MODE"};
    const Plan asks = asking("c", PlanEvent::kVariable, "MODE");
    CHECK(join(join(a, b)->plan, asks));
    CHECK_FALSE(join(join(a, sets)->plan, asks));
    CHECK_FALSE(join(join(sets, a)->plan, asks));
  }
  SUBCASE("the second changes where modules are sought") {
    Plan changes = b;
    changes.changes_imports = true;
    CHECK_FALSE(join(join(a, changes)->plan, plan_of("c")));
    const TempTree files;
    files.file("more/x.py");
    Plan adds = b;
    adds.path_added = {files / "more"};
    CHECK(join(join(a, b)->plan, asking("c", PlanEvent::kMissing, "x")));
    CHECK_FALSE(join(join(a, adds)->plan, asking("c", PlanEvent::kMissing, "x")));
  }
}

}  // namespace cohabit::python
