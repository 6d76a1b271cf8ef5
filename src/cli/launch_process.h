// What only the simulated processes of an environment tell about variables: LD_LIBRARY_PATH that
// shadows a wheel's libraries, or without which a framework's later opens fail, and OpenMP runtimes
// that meet.
#pragma once

#include <vector>

#include "cli/examine.h"
#include "repair/launch_needs.h"

namespace cohabit {

struct NeedsOfProcesses {
  std::vector<NeededVariable> variables;
  // Something was not looked at, since there is no driver here and none was asked for: what is
  // opened when a GPU is used. Without a driver a library that is found all the same may end the
  // process, where the framework would have gone on without it (onnxruntime's CUDA provider 1.22).
  bool lacks_driver = false;
};
// Simulates only where the files give a reason to. The world's machine has been read; with a
// driver, its own or one that is asked for, it is from here on examined as one with a GPU. The
// changes are judged: they clear what they are for and bring no error.
Result<NeedsOfProcesses> needs_of_processes(World& world, const VariableMap& variables,
                                            const cuda::GpuHost& host,
                                            const cuda::AskedHost& asked);

}  // namespace cohabit
