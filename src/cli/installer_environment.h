// Which environment an installer's command line changes, as the installer itself decides it.
#pragma once

#include <string>
#include <vector>

namespace cohabit {

struct InstallerEnvironment {
  std::string python;          // empty: it is not known, or not one of pip's and uv's
  bool is_sure = false;        // pip of that Python, or uv's own answer
  bool must_be_named = false;  // by the user: the active one is probably another
};
// `path`: what command[0] is on this machine. uv is asked (`uv python find`, which looks where
// `uv pip` does: --python, UV_PYTHON, VIRTUAL_ENV, CONDA_PREFIX, .venv here and above); pip is that
// of the Python that its first line names, or of --python, or of PIP_PYTHON.
InstallerEnvironment environment_of_installer(const std::string& path,
                                              const std::vector<std::string>& command);

bool is_uv(const std::vector<std::string>& command);

}  // namespace cohabit
