// What an interpreter has before it opens any module file.
#pragma once

#include <string>
#include <vector>

#include "base/tree.h"
#include "facts/python/interpreter.h"

namespace cohabit::python {

// sys.builtin_module_names, sorted.
std::vector<std::string> builtin_modules(const Tree& tree, const Interpreter& interpreter);
// The file with the interpreter's own code: its libpython, or the executable. Empty: not found.
std::string native_code_of(const Tree& tree, const Interpreter& interpreter);
// EXTENSION_SUFFIXES, in order.
std::vector<std::string> extension_suffixes(const Tree& tree, const Interpreter& interpreter);

}  // namespace cohabit::python
