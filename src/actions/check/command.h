// An installer's command line, as a question: "pip install torch", "python -m pip install -r x",
// "uv pip install torch"; "pip uninstall torch", "uv pip sync x".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actions/check/plan.h"

namespace cohabit::check {

// By the name of its command: "pip", "pip3.11".
bool is_pip(std::string_view name);
// Python's -m, with other letters before it too: "-Im".
bool is_module_option(std::string_view word);

struct AskedInstall {
  Installer installer;
  Request request;
};
// `path`: what command[0] is on this machine. Nothing: it installs nothing, or is another
// installer.
std::optional<AskedInstall> read_command(const std::string& path,
                                         const std::vector<std::string>& command);

}  // namespace cohabit::check
