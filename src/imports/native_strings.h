// The strings in a native module that may be parts of module names, however its compiler keeps
// them.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "facts/elf/object.h"
#include "imports/initial_code.h"

namespace cohabit::python {

struct NativeStrings {
  // Letters, digits, "_" and "." only, each once, in the order of the file.
  std::vector<std::string> names;
  // Made by Cython or mypyc: names of import statements are in a table together with all others,
  // and packages and modules of "from package import module" stand apart.
  bool compiled_python = false;
  // Of other modules: what their code imports when they are initialised.
  InitialCode code;
};

NativeStrings read_native_strings(const elf::Object& object, Bytes file);

// The same as a list of words, and back.
std::vector<std::string> words_of(NativeStrings strings);
NativeStrings native_strings_of(const std::vector<std::string>& words);

}  // namespace cohabit::python
