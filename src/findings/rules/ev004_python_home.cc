#include <fmt/format.h>

#include "base/paths.h"
#include "findings/rules/rules.h"

namespace cohabit::rules {
namespace {

// Where an interpreter looks for its library below a home (Modules/getpath.py of CPython). What is
// in an archive has no files to look at.
bool has_library(const Tree& tree, const Interpreter& python, const std::string& home) {
  for (const char* library : {"lib", "lib64"}) {
    // Its name: python3.13t of a build without a global lock.
    const std::string directory =
        fmt::format("{}/{}/{}", home, library, last_part(python.standard_library));
    if (tree.stat(directory + "/encodings") ||
        tree.stat(fmt::format("{}/{}/python{}{}.zip", home, library, python.major, python.minor)))
      return true;
  }
  return false;
}

std::vector<Finding> check(const EnvironmentCase& examined) {
  const auto set = examined.options.variables.find("PYTHONHOME");
  if (set == examined.options.variables.end()) return {};
  const std::string home = set->second.substr(0, set->second.find(':'));
  const Interpreter& python = examined.interpreter;
  if (home.empty() || python.standard_library.empty() || python.implementation != "CPython" ||
      has_library(examined.tree, python, home))
    return {};
  Finding finding;
  finding.severity = Severity::kError;
  finding.headline = fmt::format(
      "this Python does not start: PYTHONHOME names a directory that has no lib/python{}.{}",
      python.major, python.minor);
  // The first module of all: every process needs it.
  finding.broken.push_back(python.standard_library + "/encodings/__init__.py");
  finding.libraries.push_back({python.executable, "", ""});
  finding.evidence.push_back(
      fact("file", "its own library, which it then does not use, is in", python.standard_library));
  finding.help.push_back({"unset PYTHONHOME: an interpreter finds its library by itself",
                          "unset PYTHONHOME", Safety::kSafe});
  return {std::move(finding)};
}

}  // namespace

const Rule kEv004 = {
    "EV004",
    "python-home",
    Severity::kError,
    "PYTHONHOME leads this Python to no standard library.",
    "  PYTHONHOME is set, and the directory that it names has no lib/pythonX.Y of this version.",
    "  Python ends before anything is imported: `Fatal Python error: init_fs_encoding: failed to "
    "get the\n"
    "  Python codec of the filesystem encoding`, `ModuleNotFoundError: No module named "
    "'encodings'`.",
    "  A shell that an application with a Python of its own has set up, and a venv of another "
    "version in it.",
    "  Unset it, or set it for that application alone.",
    "  `python -I` and `python -E` pass it over; what it leads to is not compared further.",
    nullptr,
    check,
};

}  // namespace cohabit::rules
