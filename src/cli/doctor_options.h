// What the user asked doctor for.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/program.h"
#include "facts/cuda/gpu_host.h"
#include "facts/host/cpu.h"

namespace CLI {
class App;
}

namespace cohabit {

// What an examination takes from a machine besides its files.
struct Surroundings {
  std::map<std::string, std::string> variables;
  Cpu cpu;
  std::string directory;           // the current one
  std::string configuration_file;  // where it was; empty: there was none
};

struct DoctorOptions : TargetWords {
  std::string imports;
  bool trace = false;
  std::string replay;
  std::string root;
  std::string format = "full";
  std::string fail_on;  // empty: what the configuration says, else error
  std::string output;
  std::string plan, loads, bindings;  // files to write
  std::string configuration;          // file; empty: to be found
  std::string configuration_named;    // as what it is told of; empty: its path
  bool no_configuration = false;
  std::string baseline, write_baseline;
  bool assume_gpu = false;
  bool verify_hashes = false;                // of installed files, not only sizes
  bool cache = false;                        // plans are kept from one run to the next, and taken
  cuda::AskedHost host;                      // another machine's GPU and driver
  std::optional<Surroundings> surroundings;  // of a bundle; else this machine's
};

// What doctor and capture share: ENV, PROGRAM, its arguments, -m, --imports, --assume-gpu.
void add_subject_options(CLI::App& command, DoctorOptions& options);

}  // namespace cohabit
