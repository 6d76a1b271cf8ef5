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
  std::vector<std::vector<Finding>> findings;  // by order, before any repair
  std::vector<Judgement> before;               // by order
  std::vector<FoundRepair> repairs;            // best first; empty: nothing to repair, or no way
  size_t judged = 0;                           // simulations that were made
};

// Orders that are only planned when the search wants them. Null: there are none.
struct MoreOrders {
  std::function<std::vector<Order>()> others;  // of the same modules: one that is asked for clashes
  std::function<std::vector<Order>()> alone;  // of each module: no launch repairs the one asked for
};

// `orders`: those that are to work; what else was looked at is added behind them, and tells whether
// a repair is sound in every order.
SearchResult search_repairs(const RepairFacts& facts, std::vector<Order>& orders,
                            const MoreOrders& more, const Planner& planner);

}  // namespace cohabit
