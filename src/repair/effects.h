// What a repair does to a process beyond clearing its errors: which bindings move, what it costs,
// and which of the known dangers of its kind hold here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "repair/judge.h"

namespace cohabit {

struct Move {
  std::string consumer, from, to;  // paths
  uint32_t count = 0;              // distinct names
};

struct Effects {
  std::vector<Move> moves;  // most first
  uint32_t moved = 0;       // names, all moves together
  std::vector<std::string> costs;
  std::vector<std::string> risks;
};

Effects compute_effects(const JudgedProcess& before, const JudgedProcess& after,
                        const Repair& repair);

}  // namespace cohabit
