// Plans of two programs in one process, without planning the second again.
//
// The orders of n frameworks are n*(n-1) pairs, but only n plans: what the second one does differs
// from what it does alone only by the modules that are loaded already, unless it asks for something
// that the first has changed. What it asks for is known (PlanEvent), so either the joined plan is
// what planning both would give, or this says that it cannot tell.
//
// Not seen: attributes of shared modules that the first program replaces, and finders that it puts
// on sys.meta_path (they answer for its own names). On the pairs of the test environments the plans
// are those made in full (tests/wheels).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "imports/plan.h"

namespace cohabit::python {

struct JoinedPlan {
  Plan plan;
  std::vector<size_t> second_opens;  // which of the second's opens are made
};

enum class Joined : uint8_t {
  kEnds,    // its plan has no trail
  kGoesOn,  // a third program is to be joined to it: as a first, so that it has no events
};

// `second` after `first`; both were planned from start-up. Nothing: it must be planned in full.
std::optional<JoinedPlan> join_plans(const Plan& first, const Plan& second, Finder& finder,
                                     Joined kind);

}  // namespace cohabit::python
