// Options that ask for another machine than this one: its GPU and its driver.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "base/variables.h"
#include "cli/arguments.h"
#include "facts/cuda/gpu_host.h"

namespace cohabit {

inline void add_gpu_options(CLI::App& command, cuda::AskedHost& asked) {
  command
      .add_option("--driver", asked.driver,
                  "As if NVIDIA's driver had this version: 550.54.14 (default: this machine's)")
      ->check(refuse_empty);
  command
      .add_option("--sm", asked.sm,
                  "As if there were one GPU of this compute capability: 8.6 or sm_86")
      ->check(refuse_empty);
  command.add_option("--gpu-memory", asked.memory, "As if a GPU had this memory: 24GiB")
      ->check(refuse_empty);
}

// The GPUs of the examined machine: those of the files, or those asked for.
inline Result<cuda::GpuHost> gpu_host_of(const Tree& tree, const Machine& machine,
                                         const std::map<std::string, std::string>& variables,
                                         const cuda::AskedHost& asked) {
  cuda::GpuHost host =
      cuda::read_gpu_host(tree, machine, variable_of(variables, "LD_LIBRARY_PATH"));
  if (auto done = cuda::ask_for(asked, host); !done) return tl::unexpected<Error>(done.error());
  return host;
}

}  // namespace cohabit
