// One look at an environment or a machine: what is asked, what is seen. The kinds are in
// evidence.cc; those that ask the running system are here.
#pragma once

#include <string>
#include <vector>

#include "explain/answer.h"
#include "findings/environment.h"

namespace cohabit::explain {

struct Look {
  const EnvironmentCase& examined;
  const Machine& machine;
  const Answer& answer;
  std::string argument;  // captures filled in
};

struct Seen {
  Status status = Status::kNotCheckable;
  std::vector<std::string> facts;
};

// A capture that the text did not fill.
inline bool has_hole(const std::string& argument) {
  return argument.empty() || argument.find('{') != argument.npos;
}

Seen is_shm_small(const Look& look);
Seen is_mounted_noexec(const Look& look);
Seen is_address_space_limited(const Look& look);
Seen is_memory_limited(const Look& look);

}  // namespace cohabit::explain
