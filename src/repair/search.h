// The search for the smallest change whose simulation is clean. docs/design/fix.md.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "repair/judge.h"

namespace cohabit {

struct FoundRepair {
  Repair repair;
  bool every_order = false;         // clean in every order that was looked at
  std::vector<std::string> clears;  // causes of errors in the orders asked for
  std::vector<std::string> leaves;
};

struct SearchResult {
  std::vector<std::vector<Finding>> findings;    // by order, before any repair
  std::vector<Judgement> before;                 // by order
  std::vector<std::vector<std::string>> mapped;  // by order: the objects, by name and real path
  std::vector<FoundRepair> repairs;              // best first; empty: nothing to repair, or no way
  size_t judged = 0;                             // simulations that were asked for
};

// Orders that are only planned when the search wants them.
struct MoreOrders {
  std::vector<std::vector<std::string>> asked;  // are to work too
  std::vector<std::vector<std::string>>
      others;  // of the same modules: where the one asked for clashes
  std::vector<std::vector<std::string>> alone;  // each module: where no launch repairs that one
  std::function<Order(const std::vector<std::string>& imports, size_t lane)> plan;
  // Calls work(lane, i) for each of some of them, in several lanes, as soon as plan() knows all
  // that it needs.
  using Work = std::function<void(size_t lane, size_t order)>;
  std::function<void(const std::vector<std::vector<std::string>>&, const Work&)> for_each;
};

// `lanes`: one for each thread that may work at the same time, all of the same files; what is
// called with the index of one uses its facts. `orders`: those that are to work, and are planned;
// what else was looked at is added behind them, and tells whether a repair is sound in every order.
SearchResult search_repairs(const std::vector<RepairFacts>& lanes, std::vector<Order>& orders,
                            const MoreOrders& more, const Planner& planner);

}  // namespace cohabit
