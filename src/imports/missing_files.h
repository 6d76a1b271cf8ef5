// Files that a program asks for and that are not there.
#pragma once

#include <string_view>

#include "imports/interpreter.h"

namespace cohabit::python {

// What certainly is not there, of a program that expects that. True when it raised.
// `name`: as the program gives it; may be null, which is not known.
bool refuses_missing(Interpreter& in, const std::string_view* name);

}  // namespace cohabit::python
