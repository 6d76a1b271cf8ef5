// cohabit guard: an install, or one step by step, each guarded.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "actions/check/command.h"
#include "actions/check/fetch.h"
#include "actions/check/plan.h"
#include "actions/launch.h"
#include "base/addresses.h"
#include "base/paths.h"
#include "base/scratch.h"
#include "base/secrets.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/guard_steps.h"
#include "cli/guarded_install.h"
#include "cli/installer_environment.h"
#include "cli/python_command.h"

namespace cohabit {
namespace {

constexpr int kCannotGuard = 125;
constexpr int kCannotStart = 126;
constexpr int kNotFound = 127;

struct GuardOptions {
  std::string environment;
  bool force = false, no_verify = false, step = false;
  std::vector<std::string> requirements;  // files of --requirement
  std::vector<std::string> command;
};

// What the installer would change, as it finds it itself.
Result<KeptEnvironment> environment_of(const GuardOptions& options, const std::string& path) {
  const InstallerEnvironment own = environment_of_installer(path, options.command);
  if (options.environment.empty() && own.must_be_named)
    return fail("uv does not say which environment this changes: name it with --env");
  auto named =
      find_kept_environment(options.environment.empty() ? own.python : options.environment);
  if (!named || options.environment.empty() || !own.is_sure) return named;
  const auto changed = find_kept_environment(own.python);
  if (changed && changed->prefix != named->prefix)
    return fail(
        fmt::format("{} would change {}, and --env names {}: guard watches what the "
                    "installer changes, so name that, or have the installer change this",
                    last_part(options.command[0]), changed->prefix, named->prefix));
  return named;
}

// Where an installer puts things that are not in the environment we could take them back from.
Result<void> refuse_other_places(const std::string& path, const std::vector<std::string>& command) {
  static const std::vector<std::string> kPlaces = {"--target", "-t", "--user", "--root",
                                                   "--prefix"};
  const auto refusal = [](const std::string& what) {
    return fail(
        fmt::format("{} installs outside of the environment, where guard cannot take "
                    "anything back: leave it out, or run the installer alone",
                    what));
  };
  // pip takes the beginning of an option's name for it, if no other begins so ("--pre" is one).
  constexpr size_t kShortest = 4;
  const auto means = [](std::string_view word, std::string_view place) {
    if (place.size() == 2) return word.starts_with(place);
    const std::string_view name = word.substr(0, word.find('='));
    return name.size() >= kShortest && name != "--pre" && place.starts_with(name);
  };
  for (const std::string& word : command)
    for (const std::string& place : kPlaces)
      if (means(word, place)) return refusal(place);
  if (is_uv(command)) return {};
  const auto is_set = [](std::string_view text) {
    return !text.empty() && text != "0" && text != "false" && text != "no" && text != "off";
  };
  for (const char* name : {"PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER"})
    if (const char* value = std::getenv(name); value && is_set(value)) return refusal(name);
  const auto asked = check::read_command(path, command);
  if (!asked) return {};
  const std::string settings = check::settings_of_pip(asked->installer);
  for (const char* option : {"target", "prefix", "root", "user"})
    if (is_set(check::setting_of_pip(settings, option)))
      return refusal(fmt::format("`{}` in pip's configuration (`pip config list`)", option));
  return {};
}

// The environment and its store are looked at anew: an earlier step has changed them.
Result<int> install(const GuardOptions& options, GuardedInstall install) {
  auto environment = environment_of(options, install.path);
  if (!environment) return tl::unexpected<Error>(environment.error());
  auto store = open_store(*environment, Store::Access::kChange);
  if (!store) return tl::unexpected<Error>(store.error());
  std::fflush(stdout);
  install.what = without_credentials(std::move(install.what));  // it is kept
  install.force = options.force;
  install.verify = !options.no_verify;
  return install_guarded(install, std::move(*environment), std::move(*store));
}

// What was installed before the step that fails stays.
Result<int> install_by_steps(const GuardOptions& options, const std::string& path) {
  const ScratchDirectory directory("cohabit-guard");
  if (directory.path().empty()) return fail("cannot make an empty directory in $TMPDIR");
  const auto steps = steps_of(options.command, directory.path());
  if (!steps) return tl::unexpected<Error>(steps.error());
  for (size_t i = 0; i < steps->size(); i++) {
    const InstallStep& step = (*steps)[i];
    say_guarding("step {} of {}: {}", i + 1, steps->size(), step.what);
    const auto code =
        install(options, {path, step.command,
                          fmt::format("{} install {}", last_part(options.command[0]), step.what)});
    if (code && *code == 0) continue;
    say_guarding("stopped at step {} of {}, {}: {} and none after it", i + 1, steps->size(),
                 step.what, i == 0 ? "nothing is installed" : "those before it are installed");
    return code;
  }
  return 0;
}

// Without a command: pip or uv of the environment.
Result<void> complete_command(GuardOptions& options) {
  if (options.command.empty()) {
    if (options.requirements.empty())
      return fail("expected -- and an installer's command: cohabit guard -- pip install torch");
    const auto environment = find_kept_environment(options.environment);
    if (!environment) return tl::unexpected<Error>(environment.error());
    const auto installer = check::find_installer(environment->python, environment->distributions);
    if (!installer) return tl::unexpected<Error>(installer.error());
    options.command = installer->command;
    options.command.emplace_back("install");
    options.environment = environment->python.executable;
    if (installer->tool == check::Tool::kUv)
      options.command.insert(options.command.end(), {"--python", options.environment});
  }
  for (const std::string& file : options.requirements) {
    options.command.emplace_back("-r");
    options.command.push_back(file);
  }
  return {};
}

Result<int> guard(GuardOptions& options) {
  if (auto done = complete_command(options); !done) return tl::unexpected<Error>(done.error());
  auto path = find_command(options.command[0]);
  if (!path) {
    say_guarding("{}", path.error().message);
    return kNotFound;
  }
  if (::access(path->c_str(), X_OK) != 0) {
    const int error = errno;
    say_guarding("cannot start {}: {}", *path, std::strerror(error));
    return error == ENOENT ? kNotFound : kCannotStart;
  }
  if (auto good = refuse_other_places(*path, options.command); !good)
    return tl::unexpected<Error>(good.error());
  if (options.step) return install_by_steps(options, *path);
  return install(options,
                 {*path, options.command,
                  fmt::format("{}", fmt::join(without_secret_arguments(options.command), " "))});
}

}  // namespace

void add_guard_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<GuardOptions>();
  CLI::App* command = app.add_subcommand(
      "guard", "Run an installer, and take back what it did if something that worked is worse");
  command->footer(
      "Examples: cohabit guard -- pip install tensorflow\n"
      "          cohabit guard --step -r requirements.txt\n"
      "Exit code: the installer's; 1 when it was refused or what it did was taken back; 125 when "
      "Cohabit failed "
      "(then\n"
      "the next `cohabit restore` completes what was begun), 127 when there is no such installer.");
  command->add_option("--env", options->environment,
                      "The environment that is changed (default: the installer's own)");
  command->add_flag("--force", options->force, "Keep what the installer did, whatever comes of it");
  command->add_flag("--no-verify", options->no_verify,
                    "Do not run the frameworks that the install touches, before and after it");
  CLI::Option* step = command->add_flag(
      "--step", options->step,
      "Install one requirement at a time, and stop at the one that makes something worse");
  command
      ->add_option("-r,--requirement", options->requirements,
                   "With --step: a requirements file; without a command pip or uv installs it")
      ->needs(step)
      ->expected(1)
      ->take_all();
  command->add_option("command", options->command, "-- and the installer with its arguments");
  command->positionals_at_end();
  command->callback([options, &exit_code] {
    ::signal(SIGPIPE, SIG_IGN);  // what is said may be read by a `head` that has ended
    const auto code = guard(*options);
    if (!code) say_guarding("{}", code.error().message);
    exit_code = code ? *code : kCannotGuard;
  });
}

}  // namespace cohabit
