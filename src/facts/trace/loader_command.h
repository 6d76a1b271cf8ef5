// A program that was started by naming the dynamic loader itself: `ld.so --library-path D PROG
// ARGS`.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace cohabit {

// The options of dl_main in elf/rtld.c (glibc 2.36) that change what is found. What the options
// about glibc-hwcaps lead to stands in StartFacts::hwcaps.
struct LoaderOptions {
  std::optional<std::string> library_path;   // in place of LD_LIBRARY_PATH
  std::optional<std::string> preload;        // after LD_PRELOAD; the last one counts
  std::optional<std::string> inhibit_rpath;  // l_names, with ":" between, whose RPATH and RUNPATH
                                             // do not count
  bool inhibit_cache = false;
  bool audit = false;
  size_t program = 0;  // its index in the words; as many as there are: it runs none
};

// From the words of the command, the loader's own name first.
LoaderOptions parse_loader_command(const std::vector<std::string>& words);

}  // namespace cohabit
