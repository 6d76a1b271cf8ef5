// What the user asked `cohabit run` for.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "actions/launch.h"
#include "base/result.h"
#include "base/say.h"
#include "cli/python_command.h"
#include "facts/cuda/gpu_host.h"

namespace cohabit {

struct RunOptions {
  std::string imports, write;
  std::string repair = "auto";
  bool dry_run = false;
  bool quiet = false;
  bool no_env = false;
  std::string gpu_memory;  // shares
  std::string defer;       // modules
  cuda::AskedHost host;    // the GPU's whole memory
  std::vector<std::string> command;
};

template <class... Arguments>
void say(const RunOptions& options, fmt::format_string<Arguments...> text,
         Arguments&&... arguments) {
  if (options.quiet) return;
  say("cohabit run: {}\n", fmt::format(text, std::forward<Arguments>(arguments)...));
}

// What the environment of the command's Python needs set, shares of a GPU's memory, and modules
// that are to be deferred; says each on stderr.
Result<void> add_needed_variables(const RunOptions& options, const StartedPython& started,
                                  std::vector<VariableChange>& changes);

}  // namespace cohabit
