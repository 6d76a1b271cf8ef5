// The first pass: which bindings are captured at all, and which of those can be set aside at once.
#pragma once

#include <cstdint>
#include <vector>

#include "findings/captures.h"
#include "findings/closure_definers.h"

namespace cohabit {

struct Candidate {
  uint32_t binding;
  sim::ObjectId own;
  NameId name;
};

struct Candidates {
  std::vector<Candidate> foreign;  // to be judged by family
  std::vector<Candidate> runtime;  // references of the C++ runtime to itself, captured
  // References of others to the C++ runtime, that go to another copy than that of their closure.
  std::vector<Candidate> runtime_users;
  SetAside set_aside;
};

Candidates find_candidates(const ProcessView& process, ClosureDefiners& definers);

}  // namespace cohabit
