// What `cohabit check` says.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "findings/expected.h"
#include "report/report.h"

namespace cohabit::report {

struct Check {
  Report report;          // the environment; findings that are not there today; unknowns
  std::string installer;  // "pip", "uv"
  std::vector<ExpectedChange> changes;
  std::vector<Overwrite> overwrites;
  size_t claimed_twice = 0, different = 0;  // paths, each counted once
  bool is_deep = false;                     // the wheels' files were looked at
  uint64_t bytes_fetched = 0, bytes_of_wheels = 0;
};

Check without_secrets(Check check, const std::map<std::string, std::string>& variables);
// "torch 2.8.0 -> 2.6.0 (x -> torch==2.6.0), which was not asked for: ..."
std::string unasked(const ExpectedChange& change);
std::string full(const Check& check, bool colour);
std::string concise(const Check& check);
// data/schema/check.schema.json describes it.
std::string json(const Check& check);

}  // namespace cohabit::report
