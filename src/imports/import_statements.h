// The import statements that a Cython module runs when it is initialised, from calls in its code.
//
// `import a` is a call of Cython's own function __Pyx_Import with the variable of "a", and
// `from a import b` makes a list with the variable of "b" before; that function, after which
// others are called for dotted names, calls PyImport_ImportModuleLevelObject. None of them has a
// symbol: a small function is one of them if it calls that with a name that it was itself given.
// Modules of one package may share these functions (since 3.2): then the address is in a variable,
// and it is taken for that function's if all calls by it are given names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "imports/cython_names.h"

namespace cohabit::python {

// In the order of the code. Of a call, `variable` is its first argument, 0 where that is not known.
struct CodeStep {
  enum Kind { kLoad, kCall };
  Kind kind = kLoad;
  uint64_t variable = 0;
  uint64_t caller = 0;  // the function that the step is in
  // Of calls.
  uint64_t callee = 0;     // 0: not of the module's own; or the variable of its address
  bool is_import = false;  // of PyImport_ImportModuleLevelObject
  bool is_by_variable = false;
  bool is_small = false;                   // the caller
  std::optional<int> third, fifth, sixth;  // arguments that are numbers
};

struct ImportStatements {
  // "a.b", with dots before it if relative; of "from a import b" both "a" and "a.b".
  std::vector<std::string> names;
  bool complete = false;  // most of them could be read
};

ImportStatements read_statements(const std::vector<CodeStep>& steps,
                                 const std::unordered_set<uint64_t>& addresses, CythonNames& names);

}  // namespace cohabit::python
