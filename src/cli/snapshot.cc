// cohabit snapshot, snapshots, diff, restore.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "actions/snapshots/restore.h"
#include "actions/snapshots/retention.h"
#include "actions/snapshots/take.h"
#include "base/say.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/kept_environment.h"
#include "findings/environment.h"
#include "findings/rule.h"
#include "report/printable.h"
#include "report/snapshots.h"

namespace cohabit {
namespace {

struct SnapshotOptions {
  std::string name, other;
  std::string environment;
  std::string format = "full";
  std::vector<std::string> remove;
  bool full = false, orders = false, dry_run = false, no_undo = false, abandon = false,
       without_lost = false;
  Lost lost() const { return without_lost ? Lost::kLeave : Lost::kRefuse; }
};

constexpr const char* kNow = "now";

Result<void> check_format(const SnapshotOptions& options) {
  if (options.format == "full" || options.format == "json") return {};
  return fail(fmt::format("--format cannot be {}; it is full or json", options.format));
}

Result<Snapshot> read_snapshot(const Store& store, const std::string& name) {
  if (store.has(name)) return store.read(name);
  const std::vector<std::string> names = store.names();
  if (names.empty())
    return fail(fmt::format("{} has no snapshots: `cohabit snapshot` makes one", store.prefix()));
  const auto near = nearest_name(name, names);
  return fail(fmt::format("there is no snapshot {}{}; there are: {}", report::printable(name),
                          near ? fmt::format(" (did you mean {}?)", *near) : "",
                          fmt::join(names, ", ")));
}

std::string some(const std::vector<std::string>& paths) {
  return report::printable(list_some(paths));
}

void tell_taken(const Taken& taken) {
  if (taken.bytes_not_shared > 0)
    say("{} could not be linked and were copied\n", report::size_text(taken.bytes_not_shared));
  if (!taken.spoiled.empty())
    say("written in place since an earlier snapshot, which cannot give them back: {}\n",
        some(taken.spoiled));
  if (!taken.others.empty())
    say("sockets, pipes and devices are not kept: {}\n", some(taken.others));
}

Result<int> snapshot(const SnapshotOptions& options) {
  auto environment = find_kept_environment(options.environment);
  if (!environment) return tl::unexpected<Error>(environment.error());
  auto store = open_store(*environment, Store::Access::kChange);
  if (!store) return tl::unexpected<Error>(store.error());
  if (options.name == kNow)
    return fail("a snapshot cannot be called \"now\": that is what is there");
  const std::string name = options.name.empty() ? new_snapshot_name(*store, "") : options.name;
  const auto examination = examine_kept(*environment, options.orders);
  if (!examination) return tl::unexpected<Error>(examination.error());
  const auto taken =
      take_snapshot(*store, environment->claims, name,
                    notes_of(*environment, *examination, store->salt()), {options.full});
  if (!taken) return tl::unexpected<Error>(taken.error());
  tell_taken(*taken);
  const auto said = fmt::format(
      "snapshot {}: {} files, {} read ({}), {} by their distribution's word, {} as known before\n"
      "get it back with `{}`\n",
      name, taken->files_read + taken->files_claimed + taken->files_known, taken->files_read,
      report::size_text(taken->bytes_read), taken->files_claimed, taken->files_known,
      restore_command_of(environment->prefix, name));
  if (auto done = print_report(said); !done) return tl::unexpected<Error>(done.error());
  return 0;
}

Result<int> remove_snapshots(const SnapshotOptions& options, KeptEnvironment& environment) {
  auto store = open_store(environment, Store::Access::kChange);
  if (!store) return tl::unexpected<Error>(store.error());
  for (const std::string& name : options.remove)
    if (auto found = read_snapshot(*store, name); !found && !store->has(name))
      return tl::unexpected<Error>(found.error());
  if (auto removed = store->remove_unused_objects(options.remove); !removed)
    return tl::unexpected<Error>(removed.error());
  return 0;
}

Result<int> snapshots(const SnapshotOptions& options) {
  if (auto good = check_format(options); !good) return tl::unexpected<Error>(good.error());
  auto environment = find_kept_environment(options.environment);
  if (!environment) return tl::unexpected<Error>(environment.error());
  if (!options.remove.empty()) return remove_snapshots(options, *environment);
  const auto store = open_store(*environment, Store::Access::kRead);
  if (!store) return tl::unexpected<Error>(store.error());
  std::vector<Snapshot> heads;
  std::vector<std::string> damaged;
  for (const std::string& name : store->names()) {
    auto head = store->read(name, false);
    if (head)
      heads.push_back(std::move(*head));
    else
      damaged.push_back(fmt::format("{}; `cohabit snapshots --remove {} --env {}` takes it away",
                                    head.error().message, shell_word(name),
                                    shell_word(environment->prefix)));
  }
  const std::string text =
      options.format == "json" ? report::snapshots_json(heads) : report::snapshots_full(heads);
  const bool says_none = heads.empty() && !damaged.empty() && options.format != "json";
  if (auto done = print_report(says_none ? "" : text); !done)
    return tl::unexpected<Error>(done.error());
  if (!damaged.empty()) return fail(fmt::format("{}", fmt::join(damaged, "\n")));
  return 0;
}

// What is there now, as a snapshot that is not kept; examined as far as the other one was.
Result<Snapshot> present(const KeptEnvironment& environment, Store& store,
                         const std::string& findings_of) {
  auto taken = describe_environment(store, environment.claims, {});
  if (!taken) return tl::unexpected<Error>(taken.error());
  const auto examination = examine_kept(environment, findings_of == "orders");
  if (!examination) return tl::unexpected<Error>(examination.error());
  taken->snapshot.notes = notes_of(environment, *examination, store.salt());
  return std::move(taken->snapshot);
}

Result<int> diff(const SnapshotOptions& options) {
  if (auto good = check_format(options); !good) return tl::unexpected<Error>(good.error());
  auto environment = find_kept_environment(options.environment);
  if (!environment) return tl::unexpected<Error>(environment.error());
  auto store = open_store(*environment, Store::Access::kRead);
  if (!store) return tl::unexpected<Error>(store.error());
  const auto before = read_snapshot(*store, options.name);
  if (!before) return tl::unexpected<Error>(before.error());
  const bool with_now = options.other == kNow && !store->has(kNow);
  const auto after = with_now ? present(*environment, *store, before->notes.findings_of)
                              : read_snapshot(*store, options.other);
  if (!after) return tl::unexpected<Error>(after.error());
  const Difference difference = compare(*before, *after);
  const std::string text = options.format == "json"
                               ? report::difference_json(difference, options.name, options.other)
                               : report::difference_full(difference, options.name, options.other);
  if (auto done = print_report(text); !done) return tl::unexpected<Error>(done.error());
  return difference.empty() ? 0 : 1;
}

void print_plan(const RestorePlan& plan, const std::string& name) {
  fmt::print(
      "restore would, below the environment (- remove, + make, = write as in {}, m set "
      "permissions):\n",
      name);
  for (const std::string& path : plan.removed_files) fmt::print("- {}\n", report::printable(path));
  for (const std::string& path : plan.removed_directories)
    fmt::print("- {}/\n", report::printable(path));
  for (const SnapshotFile* row : plan.directories)
    fmt::print("+ {}/\n", report::printable(row->path));
  for (const SnapshotFile* row : plan.files) fmt::print("= {}\n", report::printable(row->path));
  for (const SnapshotFile* row : plan.modes) fmt::print("m {}/\n", report::printable(row->path));
}

Result<int> abandon(const KeptEnvironment& environment) {
  auto store = Store::open(environment.prefix, Store::Access::kChange);
  if (!store) return tl::unexpected<Error>(store.error());
  if (auto cleared = store->clear_stage(); !cleared) return tl::unexpected<Error>(cleared.error());
  if (auto cleared = store->clear_journal(); !cleared)
    return tl::unexpected<Error>(cleared.error());
  fmt::print("what was interrupted is not completed; the environment stays as it is\n");
  return 0;
}

// A snapshot of what is there, so that the restore can be taken back. Its name.
Result<std::string> keep_present(const KeptEnvironment& environment, Store& store,
                                 const Snapshot& wanted) {
  std::string name = new_snapshot_name(store, "before-restore-");
  SnapshotNotes notes = notes_of(environment, {}, store.salt());
  notes.reason = "before `cohabit restore " + wanted.name + "`";
  notes.is_automatic = true;
  const auto taken = take_snapshot(store, environment.claims, name, std::move(notes), {});
  if (!taken)
    return fail(taken.error().message +
                "; --no-undo restores without keeping what is there now, which is then lost");
  return name;
}

void tell_restored(const Restored& restored, const std::string& name, const std::string& undo) {
  fmt::print("restored {}: {} files written, {} removed\n", name, restored.written,
             restored.removed);
  if (!undo.empty()) fmt::print("take it back with `{}`\n", undo);
  if (!restored.lost.empty())
    say("not as in {}, since the bytes are gone: {}\n", name, some(restored.lost));
  if (!restored.left_alone.empty())
    say("left alone (sockets, pipes, devices, and what holds them): {}\n",
        some(restored.left_alone));
  if (!restored.disturbed.empty())
    say("somebody else was writing meanwhile; not as in {}: {}\n", name, some(restored.disturbed));
}

Result<int> restore_named(const SnapshotOptions& options, const KeptEnvironment& environment,
                          Store& store) {
  const auto wanted = read_snapshot(store, options.name);
  if (!wanted) return tl::unexpected<Error>(wanted.error());
  const auto now = describe_environment(store, environment.claims, {options.full});
  if (!now) return tl::unexpected<Error>(now.error());
  RestorePlan plan = plan_restore(now->snapshot, *wanted);
  if (plan.empty()) {
    fmt::print("nothing differs from {}\n", options.name);
    return 0;
  }
  uint64_t bytes_read = 0;
  auto spoiled = find_spoiled(store, plan, bytes_read);
  if (!spoiled.empty()) spoiled = refetch_of(environment)(store, *wanted, std::move(spoiled));
  if (!spoiled.empty() && !options.without_lost)
    return fail(fmt::format("{}\n`{} --without-lost` restores all others",
                            describe_spoiled(spoiled, *wanted),
                            restore_command_of(environment.prefix, options.name)));
  if (options.dry_run) {
    leave_lost(plan, spoiled);
    print_plan(plan, options.name);
    for (const SpoiledFile& file : spoiled)
      say("would stay as it is, since the bytes are gone: {}\n", report::printable(file.path));
    return 0;
  }
  std::string undo;
  if (!options.no_undo) {
    auto kept = keep_present(environment, store, *wanted);
    if (!kept) return tl::unexpected<Error>(kept.error());
    undo = std::move(*kept);
  }
  const auto restored =
      restore(store, now->snapshot, *wanted, refetch_of(environment), options.lost());
  if (!restored) return tl::unexpected<Error>(restored.error());
  tell_restored(*restored, options.name,
                undo.empty() ? "" : restore_command_of(environment.prefix, undo));
  if (auto pruned = prune_automatic(store, {options.name, undo}); !pruned)
    return tl::unexpected<Error>(pruned.error());
  return restored->disturbed.empty() && restored->lost.empty() ? 0 : 1;
}

Result<int> restore_command(const SnapshotOptions& options) {
  auto environment = find_kept_environment(options.environment);
  if (!environment) return tl::unexpected<Error>(environment.error());
  if (options.abandon) return abandon(*environment);
  if (options.dry_run)
    if (auto whole = check_whole(environment->prefix); !whole)
      return tl::unexpected<Error>(whole.error());
  auto store = open_store(*environment, Store::Access::kChange, options.lost());
  if (!store) return tl::unexpected<Error>(store.error());
  if (!options.name.empty()) return restore_named(options, *environment, *store);
  fmt::print("nothing is left to complete; `cohabit snapshots` lists what can be restored\n");
  return 0;
}

std::string not_empty(const std::string& text) {
  return text.empty() ? "expected a name, found an empty text" : "";
}

using Function = Result<int> (*)(const SnapshotOptions&);

CLI::App* add_command(CLI::App& app, int& exit_code, const char* name, const char* description,
                      const std::shared_ptr<SnapshotOptions>& options, Function function) {
  CLI::App* command = app.add_subcommand(name, description);
  command->add_option(
      "--env", options->environment,
      "A venv, conda or other prefix, or its interpreter (default: the active one)");
  command->callback(
      [options, function, &exit_code] { exit_code = exit_code_of(function(*options)); });
  return command;
}

}  // namespace

void add_snapshot_commands(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<SnapshotOptions>();
  CLI::App* command =
      add_command(app, exit_code, "snapshot", "Keep an environment as it is, to get it back",
                  options, snapshot);
  command->footer(
      "The snapshot is in ENV/.cohabit and shares the files' bytes (hard links or "
      "clones).\nExit code: 0 made, 2 Cohabit failed.");
  command->add_option("name", options->name, "Its name (default: the time)")->check(not_empty);
  command->add_flag("--full", options->full,
                    "Read every file, whatever its distribution says and is known of it");
  command->add_flag("--orders", options->orders,
                    "Also keep what doctor says of all orders of the frameworks");

  options = std::make_shared<SnapshotOptions>();
  command = add_command(app, exit_code, "snapshots", "List the snapshots of an environment",
                        options, snapshots);
  command->footer("Exit code: 0, 2 Cohabit failed.");
  command->add_option("--format", options->format, "full or json")->capture_default_str();
  command->add_option("--remove", options->remove,
                      "Remove these, and the bytes that only they have");

  options = std::make_shared<SnapshotOptions>();
  options->other = kNow;
  command = add_command(app, exit_code, "diff",
                        "What two snapshots differ in: packages, files, findings, variables",
                        options, diff);
  command->footer("Exit code: 0 nothing, 1 something, 2 Cohabit failed.");
  command->add_option("before", options->name, "A snapshot")->required();
  command->add_option("after", options->other, "Another; now: what is there")
      ->capture_default_str();
  command->add_option("--format", options->format, "full or json")->capture_default_str();

  options = std::make_shared<SnapshotOptions>();
  command = add_command(app, exit_code, "restore", "Make an environment what it was", options,
                        restore_command);
  command->footer(
      "Without a name: completes what was interrupted.\n"
      "Exit code: 0 restored, 1 but somebody else was writing, or bytes are gone, 2 Cohabit "
      "failed.");
  command->add_option("name", options->name, "A snapshot")->check(not_empty);
  command->add_flag("--dry-run", options->dry_run, "Only say what would be done");
  command->add_flag("--full", options->full, "Read all files to find what differs");
  command->add_flag("--no-undo", options->no_undo, "Do not keep what is there now");
  command->add_flag("--without-lost", options->without_lost,
                    "Restore all others where the bytes of some files are gone");
  command->add_flag("--abandon", options->abandon,
                    "Leave what was interrupted as it is, instead of completing it");
}

}  // namespace cohabit
