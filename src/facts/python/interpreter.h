// A Python environment, found from what the user names, without running its interpreter: it may be
// of another CPU, below another root, or crash at start.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/tree.h"

namespace cohabit {

// What of a process decides which Python is meant and what it sees.
struct PythonVariables {
  std::string virtual_env, conda_prefix, path, home, python_path, pyenv_version, user_base;
  bool no_user_site = false;
  bool safe_path = false;                     // PYTHONSAFEPATH
  static PythonVariables from_environment();  // of our own process
  static constexpr const char* kNames[] = {
      "VIRTUAL_ENV",   "CONDA_PREFIX",     "PATH",           "HOME",       "PYTHONPATH",
      "PYENV_VERSION", "PYTHONNOUSERSITE", "PYTHONSAFEPATH", "PRE_COMMIT", "PYTHONUSERBASE"};
  static PythonVariables of(const std::map<std::string, std::string>& variables);
  // What counts for these files: below a root without a process our own say nothing.
  PythonVariables seen_in(const Tree& tree) const;
};

enum class EnvironmentKind { kPlain, kVenv, kConda };

// A line of a .pth file that site executes because it starts with "import".
struct PthLine {
  std::string file;
  std::string code;
};

struct Interpreter {
  std::string executable;   // absolute, symlinks kept: what one would start, ENV/bin/python
  std::string real_path;    // symlinks followed: what the kernel maps, decides its $ORIGIN
  std::string prefix;       // sys.prefix
  std::string base_prefix;  // sys.base_prefix; the same as prefix outside of a venv
  EnvironmentKind kind = EnvironmentKind::kPlain;
  std::string found_by;        // "$VIRTUAL_ENV", ".venv", "$CONDA_PREFIX", "PATH"; empty: named
  std::string implementation;  // "CPython", "PyPy", "GraalVM"
  int major = 0, minor = 0;
  std::string version;                // "3.11.7", or "3.11" if no more is known
  bool system_site_packages = false;  // a venv that sees its base's packages too
  std::string user_site;              // in use; empty if it is disabled or does not exist
  std::string standard_library;       // the directory of os.py; empty if there is none
  // sys.path after site has run, existing entries only, without what the way of starting puts first
  // (the script's directory); and the code in .pth files, which may change it further.
  std::vector<std::string> module_path;
  std::vector<PthLine> pth_lines;
  // The directories of module_path that hold packages, each once: PYTHONPATH, site-packages of a
  // venv, user site, site-packages, those of the base, and what .pth files name.
  std::vector<std::string> site_directories;

  uint16_t elf_machine = 0;
  std::string elf_interpreter;        // PT_INTERP of the executable
  std::string libpython_soname;       // DT_NEEDED of the executable; empty: linked statically
  std::vector<std::string> problems;  // what is odd about this environment, in words

  bool has_shared_libpython() const { return !libpython_soname.empty(); }
};

// `path`: the directory of a venv, conda or other prefix, or its bin; an interpreter; a script that
// names its interpreter in its first lines; or nothing for the active environment (VIRTUAL_ENV,
// .venv in the current directory, CONDA_PREFIX, then PATH). The error says what was expected, what
// is there, and what to do.
Result<Interpreter> find_interpreter(
    const Tree& tree, const std::string& path,
    const PythonVariables& variables = PythonVariables::from_environment());

}  // namespace cohabit
