// The search for the smallest change whose simulation is clean. docs/design/fix.md.
#pragma once

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

// `asked`: so many of the orders, from the first, are to work; the others tell whether a repair is
// sound in every order.
SearchResult search_repairs(const RepairFacts& facts, std::vector<Order> orders, size_t asked,
                            const Planner& planner);

}  // namespace cohabit
