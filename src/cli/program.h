// The program that doctor examines instead of the environment's frameworks: a script, a module
// (-m), a notebook.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/tree.h"
#include "facts/python/interpreter.h"
#include "imports/notebook.h"
#include "imports/plan.h"

namespace cohabit {

struct Program {
  std::string title;  // as one would start it: "python app.py"
  std::string file;   // script or notebook, absolute; empty with -m
  std::string module;
  // What Python puts first in sys.path for it; nothing with PYTHONSAFEPATH, or where it is unknown.
  std::optional<std::string> directory;
  std::vector<std::string> arguments;
  std::optional<python::Notebook> notebook;
};

// [ENV] [PROGRAM [ARGUMENT...]] and -m, as they are given: each word may be left out, and then the
// next stands in its place.
struct TargetWords {
  std::array<std::string, 2> words;
  std::vector<std::string> arguments;
  std::string module;
};

// Of the words [ENV] [PROGRAM [ARGUMENT...]]: a file that ends in .py or .ipynb, or whose first
// line is #! with Python in it, is a program, what stands before it is the environment. With
// `module` (-m) the words after ENV are its arguments.
struct Targets {
  std::string environment;
  std::string program;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> variables = {};  // whose secrets a title does not tell
};
Result<Targets> split_targets(const Tree& tree, const std::vector<std::string>& words,
                              bool has_module);

// Nothing is run. Nothing: there is no program.
Result<std::optional<Program>> read_program(const Tree& tree, const Targets& targets,
                                            const std::string& module,
                                            const PythonVariables& variables);

// Both.
struct Target {
  std::string environment;  // empty: to be found
  std::optional<Program> program;
};
Result<Target> read_target(const Tree& tree, const TargetWords& given,
                           const PythonVariables& variables,
                           const std::map<std::string, std::string>& environment);

// What `python -c`, `python -m` and an interactive Python put first in sys.path: the current
// directory. Nothing with PYTHONSAFEPATH, or where there is none (--root).
std::optional<std::string> first_directory(const Tree& tree, const PythonVariables& variables);

// The same for a list of imports, if there is anything in it that one could import: a plan that
// looks into a directory holds only as long as no name in that changes.
std::optional<std::string> directory_of_imports(const Tree& tree, const PythonVariables& variables);

// How it is planned, with these variables.
python::PlanRequest request_of(const Program& program,
                               const std::map<std::string, std::string>& environment);

}  // namespace cohabit
