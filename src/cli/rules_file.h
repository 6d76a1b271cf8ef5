// Rules that a user gives to `run`, `verify` and `kernel install`: written by `cohabit fix
// --write`.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "facts/python/interpreter.h"
#include "repair/repair.h"

namespace cohabit {

// Fails for what is no such file, and for one whose last line has no end: its rest may be lost, and
// half a path would be a rule about nothing.
Result<Repair> read_rules_file(const std::string& path);

// Sentences about what the rules name that `python` does not load: files that are gone, and those
// of another environment.
std::vector<std::string> what_is_foreign(const Repair& repair, const Interpreter& python);

}  // namespace cohabit
