// What a project has decided about findings: other severities, and findings that it lives with.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "findings/finding.h"

namespace cohabit {

// A finding is ignored when everything that is named here fits.
struct Ignore {
  std::string code;
  std::string library;               // name of a file of it, with * and ?; empty: any
  std::string distribution;          // of one of its files; empty: any
  std::vector<std::string> imports;  // all of them are among those it holds for
  std::string reason;
  std::string place;  // where it is written: "cohabit.toml, ignore 2"
  Place source;       // the same, as a place in that file
};

struct Policy {
  std::map<std::string, std::optional<Severity>> severities;  // by code; nothing: off
  std::vector<Ignore> ignores;
  std::set<std::string> baseline;  // fingerprints
};

enum class SuppressedBy : uint8_t { kIgnore, kBaseline };

struct Suppressed {
  Finding finding;
  SuppressedBy by = SuppressedBy::kIgnore;
  std::string reason;
};

// Changes severities, takes out what is off, ignored or in the baseline, and adds a finding (IO902)
// for each ignore that was not needed. `environment`: its path.
std::vector<Suppressed> apply_policy(const Policy& policy, const std::string& environment,
                                     std::vector<Finding>& findings);

}  // namespace cohabit
