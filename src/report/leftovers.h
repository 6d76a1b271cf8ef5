// The reports of `cohabit clean`.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "findings/leftovers.h"

namespace cohabit::report {

struct CleanReport {
  std::string environment, python;
  std::vector<Leftover> leftovers;
  std::set<LeftoverKind> wanted;  // kinds that go
  std::string cleaning;           // by which they can be put back; empty: nothing was changed
};
std::string full(const CleanReport& report, bool colour);
// data/schema/clean.schema.json describes it.
std::string json(const CleanReport& report);

}  // namespace cohabit::report
