// Which files of a library an environment and the loader's directories have.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "facts/host/machine.h"
#include "findings/environment.h"

namespace cohabit::explain {

struct Copy {
  std::string path;
  std::string owner;  // "nvidia-cudnn-cu12 9.1.0.70"; empty: the system's
};

// "libcudnn.so.9" -> "libcudnn": the name up to what says its version.
std::string_view stem_of(std::string_view library);

// Files that exist whose name starts with `prefix`, in the environment's distributions, in the
// directories of LD_LIBRARY_PATH and in the loader's cache; each once.
std::vector<Copy> copies_of(std::string_view prefix, const EnvironmentCase& examined,
                            const Machine& machine);

}  // namespace cohabit::explain
