// A hard link is safe from installers, which remove a file and make it anew (pip unlinks first, uv
// renames). Files that are written in place instead are small and lie outside of packages: start-up
// hooks, settings, scripts. Those are copied. Nothing else of the environment is touched but the
// count of links.
#include "actions/check/staged_environment.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include "actions/ask.h"
#include "actions/check/refusal.h"
#include "base/paths.h"

namespace cohabit::check {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kSmall = 64 << 10;
// A store of snapshots; other environments and the cache of a conda installation.
const std::set<std::string, std::less<>> kLeftOut = {".cohabit", "envs", "pkgs"};

// On the file system of `prefix`, or nothing.
std::unique_ptr<ScratchDirectory> make_beside(const std::string& prefix) {
  struct stat there{};
  if (::stat(prefix.c_str(), &there) != 0) return nullptr;
  const char* set = std::getenv("TMPDIR");
  for (const std::string& parent : {directory_of(prefix), std::string(set ? set : "/tmp")}) {
    struct stat status{};
    if (::stat(parent.c_str(), &status) != 0 || status.st_dev != there.st_dev) continue;
    auto made = std::make_unique<ScratchDirectory>(".cohabit-check", parent);
    if (!made->path().empty()) return made;
  }
  return nullptr;
}

bool is_written_in_place(const fs::directory_entry& file, int depth, bool in_packages) {
  std::error_code error;
  const uintmax_t size = file.file_size(error);
  return !error && size <= kSmall && (!in_packages || depth == 0);
}

// One directory. `depth`: below site-packages, where that is above.
std::error_code copy_tree(const fs::path& from, const fs::path& to, int depth, bool in_packages) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(from, error)) {
    const fs::path place = to / entry.path().filename();
    std::error_code one;
    if (entry.is_symlink(one)) {
      fs::copy_symlink(entry.path(), place, one);
    } else if (entry.is_directory(one)) {
      const bool starts = entry.path().filename() == "site-packages";
      fs::create_directory(place, one);
      if (!one) one = copy_tree(entry.path(), place, starts ? 0 : depth + 1, in_packages || starts);
    } else if (entry.is_regular_file(one)) {
      if (!is_written_in_place(entry, depth, in_packages))
        fs::create_hard_link(entry.path(), place, one);
      // Some file systems have no links, and some files too many.
      if (one || !fs::exists(place)) fs::copy_file(entry.path(), place, one);
    }
    if (one) return one;
  }
  return error;
}

}  // namespace

Result<StagedEnvironment> StagedEnvironment::make(const Interpreter& python) {
  if (python.prefix == "/usr" || python.prefix == "/" ||
      !is_below(python.executable, python.prefix))
    return fail(
        fmt::format("--deep works on a copy of the environment, and {} is the system's: make "
                    "a venv, or leave --deep out",
                    python.prefix));
  StagedEnvironment staged;
  staged.directory_ = make_beside(python.prefix);
  if (!staged.directory_)
    return fail(
        fmt::format("--deep needs a directory on the file system of {}: neither the one "
                    "that holds it nor $TMPDIR will do",
                    python.prefix));
  staged.prefix_ = staged.directory_->path();
  staged.present_prefix_ = python.prefix;
  staged.python_ = staged.prefix_ + python.executable.substr(python.prefix.size());
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(python.prefix, error)) {
    const std::string name = entry.path().filename();
    if (kLeftOut.contains(name)) continue;
    const fs::path place = fs::path(staged.prefix_) / name;
    if (entry.is_symlink()) {
      fs::copy_symlink(entry.path(), place, error);
    } else if (entry.is_directory()) {
      fs::create_directory(place, error);
      if (!error) error = copy_tree(entry.path(), place, 0, false);
    } else {
      fs::copy_file(entry.path(), place, error);
    }
    if (error)
      return fail(fmt::format("{} cannot be copied to {}: {}", entry.path().string(),
                              staged.prefix_, error.message()));
  }
  return staged;
}

Result<void> StagedEnvironment::install(const Installer& installer, const Request& request) const {
  std::vector<std::string> command = installer.command;
  for (std::string& word : command)
    if (is_below(word, present_prefix_)) word = prefix_ + word.substr(present_prefix_.size());
  command.emplace_back("install");
  if (installer.tool == Tool::kPip)
    command.insert(command.end(),
                   {"--quiet", "--no-input", "--disable-pip-version-check", "--no-compile"});
  else
    command.insert(command.end(), {"--quiet", "--python", python_});
  if (!request.allow_build) command.insert(command.end(), {"--only-binary", ":all:"});
  command.insert(command.end(), request.arguments.begin(), request.arguments.end());
  const auto answer = hear_program(command);
  if (!answer) return tl::unexpected<Error>(answer.error());
  if (answer->status != 0)
    return tl::unexpected(
        refusal_of({installer.tool == Tool::kPip ? "pip" : "uv"}, *answer, request.allow_build));
  return {};
}

}  // namespace cohabit::check
