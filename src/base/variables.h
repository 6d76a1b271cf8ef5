// The variables of an environment of processes, by name.
#pragma once

#include <map>
#include <string>

namespace cohabit {

using VariableMap = std::map<std::string, std::string>;

// Its value; empty where it is not set.
inline std::string variable_of(const VariableMap& variables, const std::string& name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

}  // namespace cohabit
