// Starting a command with a repair: what its environment becomes, and the exec.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "repair/launch_needs.h"
#include "repair/repair.h"

namespace cohabit {

// A variable that the command gets otherwise than we have it.
struct VariableChange {
  std::string name;
  std::optional<std::string> value;  // nothing: unset
  std::string reason;
  std::string shell{};     // the line of a script that does it; empty: an export of the value
  bool holds_own = false;  // the value is made of what the user's own variables hold
};

// `environment`: ours. Finds libcohabit_preload.so where there are flags to change.
Result<std::vector<VariableChange>> launch_variables(const Repair& repair,
                                                     const Variables& environment);

// The same for variables that the environment needs. The value may be made of what is set already.
VariableChange change_of(const NeededVariable& needed, const VariableMap& environment);
// What lets the start-up hook (runtime/start/) run with these settings in every Python of the
// command.
Result<std::vector<VariableChange>> hook_variables(const Variables& settings,
                                                   const VariableMap& environment);
// Lines of those files, FILE:LINE, that need one of the modules when they are imported, so that it
// cannot be deferred (runtime/start/cohabit_defer.py). `python`: an interpreter.
Result<std::vector<std::string>> needed_at_import(const std::string& python,
                                                  const std::vector<std::string>& modules,
                                                  const std::vector<std::string>& files);
// The memory of the smallest GPU that nvidia-smi knows, in bytes; 0: it says nothing.
uint64_t ask_gpu_memory();

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
