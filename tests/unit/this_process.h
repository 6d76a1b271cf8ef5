// This very process, as what a simulation starts from.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>

#include "facts/elf/format.h"
#include "facts/trace/trace.h"

namespace cohabit {

#if defined(__aarch64__)
constexpr uint16_t kThisMachine = elf::EM_AARCH64;
#else
constexpr uint16_t kThisMachine = elf::EM_X86_64;
#endif

inline StartFacts this_process() {
  char program[PATH_MAX] = {}, directory[PATH_MAX] = {};
  REQUIRE(readlink("/proc/self/exe", program, sizeof program - 1) > 0);
  REQUIRE(getcwd(directory, sizeof directory));
  StartFacts start;
  start.program = program;
  start.arguments = {program};
  start.cwd = directory;
  for (const char* name : {"LD_LIBRARY_PATH", "LD_PRELOAD", "LD_BIND_NOW", "GLIBC_TUNABLES"})
    if (const char* value = std::getenv(name)) start.environment.emplace_back(name, value);
  return start;
}

}  // namespace cohabit
