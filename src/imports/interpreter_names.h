// The names that the native code of an interpreter may give to its modules.
//
// Attributes of built-in modules are written down as C strings, in tables of functions and in calls
// (PyMethodDef, PyModule_AddIntMacro), or as objects of strings that are made in advance (since
// CPython 3.11). So a name that no string of the read-only and initialised data ends with is an
// attribute of none of them. Ends with: the linker lets a string be the end of a longer one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "facts/elf/object.h"

namespace cohabit::python {

// The names with which strings of this file end, each the longest, read backwards, sorted.
std::vector<std::string> names_of_interpreter(const elf::Object& object, Bytes file);

// Whether one of those is this name, or ends with it.
bool may_name(const std::vector<std::string>& names, std::string_view name);

}  // namespace cohabit::python
