// The modules that code names in its imports, read from its statements alone: every branch and
// every function counts, nothing is run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "imports/syntax.h"

namespace cohabit::python {

struct ImportedName {
  std::string module;  // absolute: "a.b"
  std::vector<std::string>
      members;            // of `from a.b import c, d`: attributes or modules; "*" is left
  bool may_fail = false;  // in a `try` that catches an ImportError
};

struct ImportedNames {
  std::vector<ImportedName> names;  // as written, in the order of the text
  bool complete = true;  // else some are made while the code runs: __import__(name), exec(text)
  bool all_run = true;   // else some stand in functions, which may not be called
};

// `package`: the code's __package__, which relative imports start from; empty: it has none.
ImportedNames imported_names(const Syntax& syntax, std::string_view package = "");

// The absolute module that `from ..name import x` means, with `level` dots, in code of this
// __package__; nothing if that goes beyond the top. Of level 0: the name.
std::optional<std::string> absolute_import(std::string_view package, uint32_t level,
                                           std::string_view name);

}  // namespace cohabit::python
