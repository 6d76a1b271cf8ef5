// pip (23 to 26, resolution/resolvelib/resolver.py, get_installation_order and
// get_topological_weights) takes the graph of what it resolved: a node for each distribution, one
// for each "name[extra]" that was asked for, and one for the interpreter, on which whoever would
// come and has a Requires-Python depends. It removes the leaves of that graph, round by round; a
// round is installed before the next, and within it the names go backwards. Installed distributions
// that were looked at are in the graph too. What is left when no leaf is left is a circle, and goes
// by the longest way from the request: we do not follow that.
#include "actions/check/pip_order.h"

#include <algorithm>
#include <functional>
#include <map>

namespace cohabit::check {
namespace {

constexpr const char* kPython = "<Python>";

class Graph {
 public:
  Graph(const Distributions& distributions, const MarkerEnvironment& environment,
        const std::set<std::string>& arriving)
      : distributions_(distributions), environment_(environment), arriving_(arriving) {}

  // A distribution with extras, and all that it needs.
  void add(const std::string& name, const std::vector<std::string>& extras) {
    std::vector<std::pair<std::string, std::string>> waiting = {{normal_name(name), ""}};
    for (const std::string& extra : extras) waiting.emplace_back(normal_name(name), extra);
    while (!waiting.empty()) {
      const auto [one, extra] = waiting.back();
      waiting.pop_back();
      visit(one, extra, waiting);
    }
  }

  // Rounds of leaves; false: a circle is left.
  bool peel(const std::function<void(const std::set<std::string>&)>& round) {
    while (!children_.empty()) {
      std::set<std::string> leaves;
      for (const auto& [node, children] : children_)
        if (children.empty()) leaves.insert(node);
      if (leaves.empty()) return false;
      round(leaves);
      for (const std::string& leaf : leaves) children_.erase(leaf);
      for (auto& [node, children] : children_)
        std::erase_if(children, [&](const std::string& child) { return leaves.contains(child); });
    }
    return true;
  }

 private:
  using Waiting = std::vector<std::pair<std::string, std::string>>;

  static std::string node_of(const std::string& name, const std::string& extra) {
    return extra.empty() ? name : name + "[" + extra + "]";
  }

  void visit(const std::string& name, const std::string& extra, Waiting& waiting) {
    const Distribution* distribution = distributions_.find(name);
    const auto [node, fresh] = children_.try_emplace(node_of(name, extra));
    if (!fresh || !distribution) return;
    std::set<std::string>& children = node->second;
    if (!extra.empty()) children.insert(name);
    if (extra.empty() && arriving_.contains(name) && !distribution->requires_python.empty()) {
      children_.try_emplace(kPython);
      children.insert(kPython);
    }
    for (const std::string& text : distribution->requires_dist) {
      const auto requirement = PackageRequirement::parse(text);
      if (!requirement || !requirement->applies(environment_, extra)) continue;
      if (!extra.empty() && requirement->applies(environment_, "")) continue;
      const std::string target = normal_name(requirement->name);
      waiting.emplace_back(target, "");
      children.insert(target);
      for (const std::string& wanted : requirement->extras) {
        waiting.emplace_back(target, wanted);
        children.insert(node_of(target, wanted));
      }
    }
  }

  const Distributions& distributions_;
  const MarkerEnvironment& environment_;
  const std::set<std::string>& arriving_;
  std::map<std::string, std::set<std::string>> children_;
};

}  // namespace

std::vector<std::string> pip_order(const Plan& plan, const Distributions& expected,
                                   const MarkerEnvironment& environment,
                                   const std::vector<PackageRequirement>& requested) {
  std::set<std::string> arriving;
  for (const Arrival& arrival : plan.arrivals) arriving.insert(normal_name(arrival.name));
  Graph graph(expected, environment, arriving);
  for (const PackageRequirement& requirement : requested)
    graph.add(requirement.name, requirement.extras);
  for (const Arrival& arrival : plan.arrivals) graph.add(arrival.name, {});
  std::vector<std::string> order;
  const bool whole = graph.peel([&](const std::set<std::string>& leaves) {
    for (auto leaf = leaves.rbegin(); leaf != leaves.rend(); ++leaf)
      if (arriving.contains(*leaf)) order.push_back(*leaf);
  });
  return whole ? order : std::vector<std::string>{};
}

}  // namespace cohabit::check
