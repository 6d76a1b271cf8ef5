// A project's configuration: cohabit.toml, or [tool.cohabit] in pyproject.toml
// (docs/configuration.md).
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "findings/policy.h"

namespace cohabit {

struct Configuration {
  std::string file;     // empty: there is none
  std::string fail_on;  // empty: says nothing
  Policy policy;
  std::map<std::string, std::string> index_for;  // "cu126": the address of an index for it
};

// `file`: the one to read; empty: the nearest from the current directory upward. `named`: as what
// it is told of, where that is not its path.
Result<Configuration> read_configuration(const std::string& file, const std::string& named = "");

// Fingerprints of findings that are known.
Result<std::set<std::string>> read_baseline(const std::string& file);
std::string format_baseline(const std::vector<const Finding*>& findings,
                            const std::string& environment);

}  // namespace cohabit
