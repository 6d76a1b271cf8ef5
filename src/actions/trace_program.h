// The program that a command runs: found as the shell would, with the facts that decide whether it
// can be traced.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace cohabit {

struct TracedProgram {
  std::string command;              // path for execve, absolute
  std::string program;              // command, or the interpreter if command is a #! script
  std::string executable;           // program with links resolved
  std::string loader;               // its PT_INTERP
  std::string machine;              // "x86_64", "aarch64"
  std::vector<std::string> script;  // for a script: interpreter and its argument
};

// Fails, saying why, for what is not there and for what no tracer can be loaded into: static
// programs, programs that gain privileges, foreign machines.
Result<TracedProgram> find_program(const std::string& name, const std::string& search_path,
                                   const std::string& working_directory);

// The interpreter line of a #! script, as the kernel reads it: path and at most one argument.
// Empty if the file is none.
std::vector<std::string> script_interpreter(const std::string& path);

// The active glibc-hwcaps subdirectories, best first, as the loader itself prints them when it is
// given these options (--help, glibc 2.33 and later).
std::vector<std::string> active_hwcaps(const std::string& loader,
                                       const std::vector<std::string>& options,
                                       const std::vector<std::string>& environment);

}  // namespace cohabit
