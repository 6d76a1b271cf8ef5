// Environment variables that frameworks read, by a table (data/variables.tsv) and by the strings in
// the files of an environment. Values are never part of a finding: they may be secrets.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/variables.h"
#include "findings/environment.h"

namespace cohabit {

struct KnownVariable {
  std::string_view name;
  // Modules; "system": not of an environment; "python": Python itself, nothing is to be told of it.
  std::vector<std::string_view> readers;
  std::string_view source;
};
const std::vector<KnownVariable>& known_variables();

// Whether a word stands in a Python file, or in the constants of a native one.
bool stands_in_file(const Tree& tree, const std::string& path, std::string_view word);
// The same of a package that is installed. `files`: names below site-packages, the last part a
// pattern.
bool stands_in_package(const Tree& tree, const Interpreter& interpreter,
                       const std::vector<std::string_view>& files, std::string_view word);

// "XLA_", "NCCL_", or the name is that of one that is known but for a letter: a variable that is
// meant for a framework, or for what lies below one.
bool looks_like_framework_variable(std::string_view name);

// What is set here and concerns frameworks.
struct SetVariables {
  struct Misspelled {
    std::string name;
    std::string meant;
  };
  struct Read {
    std::string name;
    std::string by;  // packages, a file, or what is not of an environment
  };
  std::vector<Read> read;
  std::vector<Misspelled> misspelled;  // nobody reads it, and one that is read has nearly that name
  std::vector<std::string> unread;     // nobody here reads it
};
// Of these variables; their values do not matter. Looks into the files of the environment if there
// is one that the table does not know.
SetVariables judge_variables(const EnvironmentCase& examined, const VariableMap& variables);

// What EV001 says of them.
std::vector<Finding> unread_variables(const SetVariables& set);

}  // namespace cohabit
