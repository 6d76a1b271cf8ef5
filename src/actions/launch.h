// Starting a command with a repair: what its environment becomes, and the exec.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "repair/repair.h"

namespace cohabit {

// A variable that the command gets otherwise than we have it.
struct VariableChange {
  std::string name;
  std::optional<std::string> value;  // nothing: unset
  std::string reason;
};

// `environment`: ours. Finds libcohabit_preload.so where there are flags to change.
Result<std::vector<VariableChange>> launch_variables(const Repair& repair,
                                                     const Variables& environment);

// A shell script that does the same for `command`, followed by its own arguments.
std::string launch_script(const Repair& repair, const std::vector<VariableChange>& changes,
                          const std::vector<std::string>& command);

// The command as a shell would find it: a path. Fails where there is none.
Result<std::string> find_command(const std::string& name);

// Becomes the command: process number, descriptors, terminal and signals stay. Returns only when it
// cannot.
Error execute(const std::string& path, const std::vector<std::string>& command,
              const std::vector<VariableChange>& changes);

}  // namespace cohabit
