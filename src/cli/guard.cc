// cohabit guard: find the environment; [predict]; examine; snapshot; install; examine; keep or take
// back.
#include <fmt/format.h>
#include <sys/wait.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "actions/check/check.h"
#include "actions/check/command.h"
#include "actions/launch.h"
#include "actions/snapshots/installer.h"
#include "actions/snapshots/restore.h"
#include "actions/snapshots/retention.h"
#include "actions/snapshots/take.h"
#include "base/addresses.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/kept_environment.h"
#include "cli/python_command.h"
#include "cli/worse.h"
#include "report/printable.h"
#include "report/snapshots.h"

namespace cohabit {
namespace {

constexpr int kTakenBack = 1;
constexpr int kCannotGuard = 125;
constexpr int kNotFound = 127;

struct GuardOptions {
  std::string environment;
  bool force = false;
  std::vector<std::string> command;
};

std::string last_part(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// The value of an option, "--python X" or "--python=X"; empty: not given.
std::string value_of(const std::vector<std::string>& command,
                     const std::vector<std::string>& names) {
  for (size_t i = 1; i < command.size(); i++)
    for (const std::string& name : names) {
      if (command[i] == name && i + 1 < command.size()) return command[i + 1];
      if (command[i].starts_with(name + "=")) return command[i].substr(name.size() + 1);
    }
  return "";
}

bool is_uv(const std::vector<std::string>& command) {
  return last_part(command[0]) == "uv";
}

// What the installer would change, as it finds it itself.
std::string environment_of(const GuardOptions& options, const std::string& path) {
  if (!options.environment.empty()) return options.environment;
  const bool uv = is_uv(options.command);
  std::string named = value_of(options.command, uv ? std::vector<std::string>{"--python", "-p"}
                                                   : std::vector<std::string>{"--python"});
  if (named.find('/') != std::string::npos) return named;
  return uv ? "" : find_python_of(path).value_or("");
}

// Where an installer puts things that are not in the environment we could take them back from.
Result<void> refuse_other_places(const std::vector<std::string>& command) {
  static const std::vector<std::string> kPlaces = {"--target", "-t", "--user", "--root",
                                                   "--prefix"};
  for (const std::string& word : command)
    for (const std::string& place : kPlaces)
      if (word == place || (place.size() > 2 && word.starts_with(place + "=")))
        return fail(
            fmt::format("{} installs outside of the environment, where guard cannot take "
                        "anything back: leave it out, or run the installer alone",
                        place));
  return {};
}

template <class... Arguments>
void say(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  fmt::print(stderr, "cohabit guard: {}\n",
             fmt::format(text, std::forward<Arguments>(arguments)...));
}

// One install, watched.
class Guard {
 public:
  Guard(const GuardOptions& options, std::string path, KeptEnvironment environment, Store store)
      : options_(options),
        path_(std::move(path)),
        environment_(std::move(environment)),
        store_(std::move(store)) {}

  Result<int> run();

 private:
  bool is_refused() const;
  Result<void> keep();
  Result<int> judge(int status);
  Result<int> judge_change(const Snapshot& now, int status);
  Result<void> take_back(const Snapshot& now);
  Result<int> finish(int status);
  void tell_worse(const Worse& worse, const KeptEnvironment& after) const;

  const GuardOptions& options_;
  const std::string path_;
  KeptEnvironment environment_;
  Store store_;
  Examination before_;
  Snapshot kept_;
};

// What the install would break is said before it is started.
bool Guard::is_refused() const {
  const auto asked = check::read_command(path_, options_.command);
  if (!asked) return false;
  const auto outcome = check::check_install(asked->installer, environment_.python,
                                            environment_.distributions, asked->request);
  if (!outcome) {
    say("not predicted: {}", report::printable(without_credentials(outcome.error().message)));
    return false;
  }
  size_t errors = 0;
  for (const Finding& finding : outcome->findings) {
    if (finding.severity != Severity::kError) continue;
    errors++;
    say("would be: {}[{}]: {}", severity_name(finding.severity), finding.code,
        report::printable(without_credentials(finding.headline)));
  }
  if (errors == 0) return false;
  say("{}", options_.force ? "goes on, since --force was given"
                           : "nothing was installed; --force installs it all the same");
  return !options_.force;
}

Result<void> Guard::keep() {
  auto examination = examine_kept(environment_, true);
  if (!examination) return tl::unexpected<Error>(examination.error());
  before_ = std::move(*examination);
  SnapshotNotes notes = notes_of(environment_, before_, store_.salt());
  notes.reason = fmt::format("before `{}`", fmt::join(options_.command, " "));
  notes.is_automatic = true;
  auto taken = take_snapshot(store_, environment_.claims, new_snapshot_name(store_, "guard-"),
                             std::move(notes), {});
  if (!taken) return tl::unexpected<Error>(taken.error());
  kept_ = std::move(taken->snapshot);
  return store_.write_journal(
      {Journal::Action::kInstall, kept_.name, fmt::format("{}", fmt::join(options_.command, " "))});
}

Result<void> Guard::take_back(const Snapshot& now) {
  const auto restored = restore(store_, now, kept_);
  if (!restored)
    return fail(
        fmt::format("what {} did is not taken back: {}\n`cohabit restore` tries it again, "
                    "`cohabit restore --abandon` leaves the environment as it is now",
                    last_part(options_.command[0]), restored.error().message));
  say("taken back: {} is as before ({} files put back, {} removed)", environment_.prefix,
      restored->written, restored->removed);
  for (const std::string& path : restored->disturbed)
    say("somebody else was writing meanwhile; not as before: {}", report::printable(path));
  return {};
}

Result<int> Guard::finish(int status) {
  if (auto cleared = store_.clear_journal(); !cleared)
    return tl::unexpected<Error>(cleared.error());
  if (auto pruned = prune_automatic(store_, {kept_.name}); !pruned)
    return tl::unexpected<Error>(pruned.error());
  return status;
}

void Guard::tell_worse(const Worse& worse, const KeptEnvironment& after) const {
  constexpr size_t kShown = 3;
  for (size_t i = 0; i < std::min(worse.orders.size(), kShown); i++)
    say("`import {}` was sound and is not any more", worse.orders[i]);
  if (worse.orders.size() > kShown) say("and {} more orders", worse.orders.size() - kShown);
  for (size_t i = 0; i < std::min(worse.findings.size(), kShown); i++)
    say("new: {}[{}]: {}", severity_name(worse.findings[i]->severity), worse.findings[i]->code,
        report::printable(worse.findings[i]->headline));
  if (worse.findings.size() > kShown) say("and {} more", worse.findings.size() - kShown);
  const auto changes = compare_packages(kept_.notes.packages, packages_of(after.distributions));
  for (const std::string& culprit : find_culprits(worse, changes, after.distributions))
    say("it came with: {}", culprit);
}

// The installer was content.
Result<int> Guard::judge_change(const Snapshot& now, int status) {
  const auto after = find_kept_environment(environment_.python.executable);
  const auto examination = after ? examine_kept(*after, true)
                                 : Result<Examination>(tl::unexpected<Error>(after.error()));
  if (!examination) {
    say("the environment cannot be examined any more: {}", examination.error().message);
    if (options_.force) return finish(status);
    if (auto done = take_back(now); !done) return tl::unexpected<Error>(done.error());
    return finish(kTakenBack);
  }
  const Worse worse = find_worse(before_, *examination, kept_.notes.packages);
  for (const PackageChange& change :
       compare_packages(kept_.notes.packages, packages_of(after->distributions)))
    say("{}", report::package_change(change));
  if (worse.empty()) {
    say("nothing that worked is worse; take it back with `cohabit restore {}`", kept_.name);
    return finish(status);
  }
  tell_worse(worse, *after);
  if (options_.force) {
    say("kept, since --force was given; take it back with `cohabit restore {}`", kept_.name);
    return finish(status);
  }
  if (auto done = take_back(now); !done) return tl::unexpected<Error>(done.error());
  say("--force keeps it all the same");
  return finish(kTakenBack);
}

Result<int> Guard::judge(int status) {
  const auto now = describe_environment(store_, environment_.claims, {});
  if (!now) return tl::unexpected<Error>(now.error());
  if (plan_restore(now->snapshot, kept_).empty()) {
    if (auto removed = store_.remove(kept_.name); !removed)
      return tl::unexpected<Error>(removed.error());
    return finish(status);
  }
  if (status == 0) return judge_change(now->snapshot, status);
  if (options_.force) return finish(status);
  say("{} failed (exit code {}) and has changed the environment", last_part(options_.command[0]),
      status);
  if (auto done = take_back(now->snapshot); !done) return tl::unexpected<Error>(done.error());
  return finish(status);
}

Result<int> Guard::run() {
  if (is_refused()) return kTakenBack;
  if (auto kept = keep(); !kept) return tl::unexpected<Error>(kept.error());
  const auto status = run_installer(path_, options_.command, store_.lock());
  if (!status) {
    (void)store_.clear_journal();
    return tl::unexpected<Error>(status.error());
  }
  return judge(exit_code_of_process(*status));
}

Result<int> guard(const GuardOptions& options) {
  auto path = find_command(options.command[0]);
  if (!path) {
    say("{}", path.error().message);
    return kNotFound;
  }
  if (auto good = refuse_other_places(options.command); !good)
    return tl::unexpected<Error>(good.error());
  auto environment = find_kept_environment(environment_of(options, *path));
  if (!environment) return tl::unexpected<Error>(environment.error());
  auto store = open_store(*environment, Store::Access::kChange);
  if (!store) return tl::unexpected<Error>(store.error());
  std::fflush(stdout);
  return Guard(options, std::move(*path), std::move(*environment), std::move(*store)).run();
}

}  // namespace

void add_guard_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<GuardOptions>();
  CLI::App* command = app.add_subcommand(
      "guard", "Run an installer, and take back what it did if something that worked is worse");
  command->footer(
      "Example: cohabit guard -- pip install tensorflow\n"
      "Exit code: the installer's; 1 when it was refused or what it did was taken back; 125 when "
      "Cohabit failed "
      "(then\n"
      "the next `cohabit restore` completes what was begun), 127 when there is no such installer.");
  command->add_option("--env", options->environment,
                      "The environment that is changed (default: the installer's own)");
  command->add_flag("--force", options->force, "Keep what the installer did, whatever comes of it");
  command->add_option("command", options->command, "-- and the installer with its arguments")
      ->required();
  command->positionals_at_end();
  command->callback([options, &exit_code] {
    const auto code = guard(*options);
    if (!code) say("{}", code.error().message);
    exit_code = code ? *code : kCannotGuard;
  });
}

}  // namespace cohabit
