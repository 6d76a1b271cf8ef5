#include <fmt/format.h>

#include "actions/check/plan.h"
#include "actions/launch.h"

namespace cohabit::check {

Result<Installer> find_installer(const Interpreter& python, const Distributions& distributions) {
  if (distributions.find("pip")) return Installer{Tool::kPip, {python.executable, "-m", "pip"}};
  auto uv = find_command("uv");
  if (!uv)
    return fail(
        fmt::format("{} has no pip, and uv is not in PATH: one of them has to say what it would "
                    "install; install uv, or run `{} -m ensurepip`",
                    python.prefix, python.executable));
  return Installer{Tool::kUv, {*uv, "pip"}};
}

Result<Plan> ask_installer(const Installer& installer, const Interpreter& python,
                           const Request& request) {
  return installer.tool == Tool::kPip ? ask_pip(installer, request)
                                      : ask_uv(installer, python, request);
}

}  // namespace cohabit::check
