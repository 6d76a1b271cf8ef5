#include "cli/guarded_install.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>

#include "actions/ask.h"
#include "actions/check/check.h"
#include "actions/check/command.h"
#include "actions/snapshots/installer.h"
#include "actions/snapshots/restore.h"
#include "actions/snapshots/retention.h"
#include "actions/snapshots/take.h"
#include "base/addresses.h"
#include "base/paths.h"
#include "cli/arguments.h"
#include "cli/runs_around.h"
#include "cli/worse.h"
#include "facts/python/requirement.h"
#include "findings/environment.h"
#include "report/check.h"
#include "report/printable.h"
#include "report/snapshots.h"

namespace cohabit {
namespace {

void tell_broken(const RunsAround::Broken& one) {
  say_guarding("`{}` does not work: {}", one.what, report::printable(one.how));
}

// One install, watched.
class Guard {
 public:
  Guard(const GuardedInstall& install, KeptEnvironment environment, Store store)
      : install_(install), environment_(std::move(environment)), store_(std::move(store)) {}

  Result<int> run();

 private:
  bool is_refused();
  void run_before();
  Result<void> keep();
  Result<int> judge(int status);
  Result<int> judge_change(const Snapshot& now, int status);
  Result<void> take_back(const Snapshot& now);
  Result<int> finish(int status);
  Result<int> finish_kept(int status);
  void tell_worse(const Worse& worse, const KeptEnvironment& after) const;
  std::string way_back() const { return restore_command_of(environment_.prefix, kept_.name); }
  void tell_dropped(std::vector<RunsAround::Broken>& broken);
  bool is_broken(const std::vector<PackageChange>& changes, const Distributions& after);
  std::vector<RunsAround::Broken> run_own(const std::vector<PackageChange>& packages) const;
  bool has_broken_altered() const;
  RunsAround::Known known() const {
    return altered_.empty() ? RunsAround::Known::kMayBe : RunsAround::Known::kNothing;
  }
  std::string cannot_start() const;
  bool has_lost_python() const;
  bool brings_broken(const std::vector<PackageChange>& changes, const Examination& now) const;

  const GuardedInstall& install_;
  KeptEnvironment environment_;
  Store store_;
  bool starts_ = false;                            // the interpreter, before the install
  std::optional<std::set<std::string>> expected_;  // normal names of what would change
  std::set<std::string> asked_;                    // those of them that the request names
  bool has_dropped_ = false;                       // something that worked, as was asked for
  Examination before_;
  RunsAround runs_;
  Snapshot kept_;
  std::vector<Altered> altered_;  // by the install
};

// What the install would break is said before it is started.
bool Guard::is_refused() {
  const auto asked = check::read_command(install_.path, install_.command);
  if (!asked) {
    say_guarding("not predicted: only pip and uv pip can be asked what they would do");
    return false;
  }
  const auto outcome = check::check_install(asked->installer, environment_.python,
                                            environment_.distributions, asked->request);
  if (!outcome) {
    say_guarding("not predicted:");
    std::istringstream lines(without_credentials(outcome.error().message));
    for (std::string line; std::getline(lines, line);)
      say_guarding("  {}", report::printable(line));
    return false;
  }
  expected_.emplace();
  for (const ExpectedChange& change : outcome->changes) {
    expected_->insert(normal_name(change.name));
    if (change.because.size() == 1) asked_.insert(normal_name(change.name));
  }
  const Refusal refusal =
      refusal_of(outcome->findings, outcome->changes, environment_.distributions);
  for (const Finding* finding : refusal.findings)
    say_guarding("would be: {}[{}]: {}", severity_name(finding->severity), finding->code,
                 report::printable(without_credentials(finding->headline)));
  for (const ExpectedChange* change : refusal.replaced)
    say_guarding("would be: {}", report::printable(without_credentials(report::unasked(*change))));
  if (refusal.empty()) return false;
  say_guarding("{}", install_.force ? "goes on, since --force was given"
                                    : "nothing was installed; --force installs it all the same");
  return !install_.force;
}

void Guard::run_before() {
  if (!install_.verify) return;
  starts_ = cannot_start().empty();
  const auto done = runs_.run_before(environment_.python.executable, before_.verdicts, expected_);
  if (!done) say_guarding("not run before: {}", done.error().message);
}

Result<void> Guard::keep() {
  auto examination = examine_kept(environment_, true);
  if (!examination) return tl::unexpected<Error>(examination.error());
  before_ = std::move(*examination);
  run_before();
  SnapshotNotes notes = notes_of(environment_, before_, store_.salt());
  notes.reason = fmt::format("before `{}`", install_.what);
  notes.is_automatic = true;
  auto taken = take_snapshot(store_, environment_.claims, new_snapshot_name(store_, "guard-"),
                             std::move(notes), {});
  if (!taken) return tl::unexpected<Error>(taken.error());
  kept_ = std::move(taken->snapshot);
  return store_.write_journal({Journal::Action::kInstall, kept_.name, install_.what});
}

Result<void> Guard::take_back(const Snapshot& now) {
  const auto restored = restore(store_, now, kept_, refetch_of(environment_));
  if (!restored)
    return fail(fmt::format(
        "what {} did is not taken back: {}\n`cohabit restore --env {}` tries it again, with "
        "--without-lost it restores all that can be, with --abandon it leaves the environment as "
        "it is now",
        last_part(install_.command[0]), restored.error().message, shell_word(environment_.prefix)));
  say_guarding("taken back: {} is as before ({} files put back, {} removed)", environment_.prefix,
               restored->written, restored->removed);
  for (const std::string& path : restored->disturbed)
    say_guarding("somebody else was writing meanwhile; not as before: {}", report::printable(path));
  return {};
}

Result<int> Guard::finish(int status) {
  if (auto cleared = store_.clear_journal(); !cleared)
    return tl::unexpected<Error>(cleared.error());
  if (auto pruned = prune_automatic(store_, {kept_.name}); !pruned)
    return tl::unexpected<Error>(pruned.error());
  return status;
}

Result<int> Guard::finish_kept(int status) {
  say_guarding("kept, since --force was given; take it back with `{}`", way_back());
  return finish(status);
}

void Guard::tell_worse(const Worse& worse, const KeptEnvironment& after) const {
  constexpr size_t kShown = 3;
  for (size_t i = 0; i < std::min(worse.orders.size(), kShown); i++)
    say_guarding("`import {}` was sound and is not any more", worse.orders[i]);
  if (worse.orders.size() > kShown)
    say_guarding("and {} more orders", worse.orders.size() - kShown);
  for (size_t i = 0; i < std::min(worse.findings.size(), kShown); i++)
    say_guarding("new: {}[{}]: {}", severity_name(worse.findings[i]->severity),
                 worse.findings[i]->code, report::printable(worse.findings[i]->headline));
  if (worse.findings.size() > kShown) say_guarding("and {} more", worse.findings.size() - kShown);
  const auto changes = compare_packages(kept_.notes.packages, packages_of(after));
  for (const std::string& culprit : find_culprits(worse, changes, after.distributions))
    say_guarding("it came with: {}", culprit);
}

// Not what the user wants taken back, but what the user must hear of.
void Guard::tell_dropped(std::vector<RunsAround::Broken>& broken) {
  for (const RunsAround::Broken& one : broken) {
    if (!one.is_dropped) continue;
    has_dropped_ = true;
    say_guarding(
        "`{}` worked and is gone with {}, which was asked for: no installed file needs it, your "
        "own code may",
        one.what, report::package_change(one.blamed[0]));
  }
  std::erase_if(broken, [](const RunsAround::Broken& one) { return one.is_dropped; });
}

// Runs what worked before, as far as it comes to what has changed.
bool Guard::is_broken(const std::vector<PackageChange>& changes, const Distributions& after) {
  if (!install_.verify) return false;
  std::vector<PackageChange> all = changes;
  for (const Altered& one : altered_) all.push_back(one.package);
  auto broken = runs_.run_after(environment_.python.executable, all, known(), asked_);
  if (!broken) {
    say_guarding("not run again: {}", broken.error().message);
    return false;
  }
  tell_dropped(*broken);
  std::set<std::string> culprits, others;
  for (const RunsAround::Broken& one : *broken) {
    say_guarding("`{}` worked and does not any more: {}", one.what, report::printable(one.how));
    for (const PackageChange& change : one.blamed.empty() ? one.used : one.blamed)
      if (change.before != change.after) culprits.insert(culprit(change, changes, after));
    for (const PackageChange& change : one.used)
      if (change.before != change.after) others.insert(culprit(change, changes, after));
  }
  for (const std::string& sentence : culprits) say_guarding("it came with: {}", sentence);
  for (const std::string& sentence : others)
    if (!culprits.contains(sentence)) say_guarding("it uses this too, which changed: {}", sentence);
  return !broken->empty();
}

// What cannot be imported of these.
std::vector<RunsAround::Broken> Guard::run_own(const std::vector<PackageChange>& packages) const {
  auto broken = RunsAround::run_own(environment_.python.executable, packages, known());
  if (!broken) {
    say_guarding("not run: {}", broken.error().message);
    return {};
  }
  return std::move(*broken);
}

// What was brought does not fit to what is there, and does not work: that is no install either.
bool Guard::brings_broken(const std::vector<PackageChange>& changes, const Examination& now) const {
  if (!install_.verify) return false;
  const std::vector<PackageChange> suspected = suspects(changes, now.findings);
  if (suspected.empty()) return false;
  const auto broken = run_own(suspected);
  for (const RunsAround::Broken& one : broken) {
    tell_broken(one);
    for (const Finding& finding : now.findings)
      if (!suspects(one.used, {finding}).empty())
        say_guarding("{}[{}]: {}", severity_name(finding.severity), finding.code,
                     report::printable(finding.headline));
  }
  return !broken.empty();
}

// What was written over in a package that stays may be harmless; what cannot be imported any more
// is not.
bool Guard::has_broken_altered() const {
  if (!install_.verify || altered_.empty()) return false;
  std::vector<PackageChange> packages;
  for (const Altered& one : altered_) packages.push_back(one.package);
  const auto broken = run_own(packages);
  for (const RunsAround::Broken& one : broken) tell_broken(one);
  return !broken.empty();
}

// What python says when it does not even start; empty: it does.
std::string Guard::cannot_start() const {
  constexpr int kPatience = 60'000;  // milliseconds
  const auto answer =
      hear_program({environment_.python.executable, "-I", "-B", "-c", "pass"}, "", kPatience);
  if (!answer) return answer.error().message;
  if (exit_code_of_process(answer->status) == 0) return "";
  const std::string said = last_line(answer->errors);
  return said.empty() ? fmt::format("exit code {}", exit_code_of_process(answer->status)) : said;
}

bool Guard::has_lost_python() const {
  const std::string said = starts_ ? cannot_start() : "";
  if (!said.empty())
    say_guarding("{} started and does not any more: {}", environment_.python.executable,
                 report::printable(said));
  return !said.empty();
}

// The installer was content.
Result<int> Guard::judge_change(const Snapshot& now, int status) {
  const auto after = find_kept_environment(environment_.python.executable);
  const auto examination = after ? examine_kept(*after, true)
                                 : Result<Examination>(tl::unexpected<Error>(after.error()));
  if (!examination) {
    say_guarding("the environment cannot be examined any more: {}", examination.error().message);
    if (install_.force) return finish(status);
    if (auto done = take_back(now); !done) return tl::unexpected<Error>(done.error());
    return finish(kTakenBack);
  }
  const Worse worse = find_worse(before_, *examination, kept_.notes.packages);
  const auto changes = compare_packages(kept_.notes.packages, packages_of(*after));
  altered_ = find_altered(kept_, now, *after, changes);
  for (const PackageChange& change : changes) say_guarding("{}", report::package_change(change));
  for (const Altered& one : altered_)
    say_guarding("{}", report::printable(fmt::format("{} {} stays, but not as it was installed: {}",
                                                     one.package.name, one.package.after,
                                                     list_some(one.files))));
  if (!worse.empty()) tell_worse(worse, *after);
  // What is known to be worse need not be run.
  if (worse.empty() && !has_lost_python() && !is_broken(changes, after->distributions) &&
      !brings_broken(changes, *examination) && !has_broken_altered()) {
    say_guarding("nothing {}that was looked at is worse; take it back with `{}`",
                 has_dropped_ ? "else " : "", way_back());
    return finish(status);
  }
  if (install_.force) return finish_kept(status);
  if (auto done = take_back(now); !done) return tl::unexpected<Error>(done.error());
  say_guarding("--force keeps it all the same");
  return finish(kTakenBack);
}

Result<int> Guard::judge(int status) {
  const auto now = describe_environment(store_, environment_.claims, {});
  if (!now) return tl::unexpected<Error>(now.error());
  if (plan_restore(now->snapshot, kept_).empty()) {
    say_guarding("{} has changed nothing in {}", last_part(install_.command[0]),
                 environment_.prefix);
    if (auto removed = store_.remove(kept_.name); !removed)
      return tl::unexpected<Error>(removed.error());
    return finish(status);
  }
  if (status == 0) return judge_change(now->snapshot, status);
  say_guarding("{} failed (exit code {}) and has changed the environment",
               last_part(install_.command[0]), status);
  if (install_.force) return finish_kept(status);
  if (auto done = take_back(now->snapshot); !done) return tl::unexpected<Error>(done.error());
  return finish(status);
}

Result<int> Guard::run() {
  if (is_refused()) return kTakenBack;
  if (auto kept = keep(); !kept) return tl::unexpected<Error>(kept.error());
  const auto status = run_installer(install_.path, install_.command, store_.lock());
  if (!status) {
    (void)store_.clear_journal();
    return tl::unexpected<Error>(status.error());
  }
  return judge(exit_code_of_process(*status));
}

}  // namespace

Result<int> install_guarded(const GuardedInstall& install, KeptEnvironment environment,
                            Store store) {
  return Guard(install, std::move(environment), std::move(store)).run();
}

}  // namespace cohabit
