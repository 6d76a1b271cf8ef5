// sys.path, as CPython's start-up and its site module leave it.
#pragma once

#include "base/tree.h"
#include "facts/python/interpreter.h"

namespace cohabit {

// Fills module_path, pth_lines, user_site and site_directories of an interpreter whose other
// members are known.
void read_site_path(const Tree& tree, Interpreter& interpreter, const PythonVariables& variables);

}  // namespace cohabit
