// What the user asked doctor for.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "facts/cuda/gpu_host.h"

namespace cohabit {

struct DoctorOptions {
  std::array<std::string, 2> words;    // [ENV] [PROGRAM]
  std::vector<std::string> arguments;  // [ARGUMENT...]
  std::string module;                  // -m
  std::string imports;
  bool trace = false;
  std::string replay;
  std::string root;
  std::string format = "full";
  std::string fail_on;  // empty: what the configuration says, else error
  std::string output;
  std::string plan, loads, bindings;  // files to write
  std::string configuration;          // file; empty: to be found
  bool no_configuration = false;
  std::string baseline, write_baseline;
  bool assume_gpu = false;
  cuda::AskedHost host;  // another machine's GPU and driver
};

}  // namespace cohabit
