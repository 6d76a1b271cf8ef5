#include "actions/snapshots/restore.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>

#include "actions/snapshots/cleaning.h"
#include "actions/snapshots/take.h"
#include "base/changes.h"
#include "base/paths.h"
#include "findings/environment.h"

namespace cohabit {
namespace {

constexpr uint32_t kOwnersBits = 0700;

disk::Attributes attributes_of(const SnapshotFile& row) {
  return {row.mode, row.uid, row.gid, row.modified};
}

bool has_attributes(const Entry& entry, const SnapshotFile& row) {
  return entry.mode == row.mode && entry.uid == row.uid && entry.gid == row.gid &&
         entry.modified == row.modified;
}

// What an object has to be said about.
struct Judged {
  bool good = false;
  std::string why;
  uint64_t bytes_read = 0;
};

// Whether this object holds the bytes that the row wants. They are read if the inode has changed in
// any way since they were known.
Judged judge_object(Store& store, const std::string& object, const SnapshotFile& row) {
  Judged judged;
  const std::string path = store.object_path(object);
  Entry entry;
  if (!look_at(path, entry) || entry.kind != EntryKind::kFile) {
    judged.why = "its copy is not in the store any more";
    return judged;
  }
  if (entry.size != row.size) {
    judged.why =
        fmt::format("it was written in place since ({} bytes, then {})", entry.size, row.size);
    return judged;
  }
  const KnownInode* known = store.find_known(entry);
  if (known && known->hash == row.hash) {
    judged.good = true;
    return judged;
  }
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  const auto hash = file >= 0 ? sha256_of_descriptor(file) : std::nullopt;
  if (!hash) judged.why = fmt::format("its copy cannot be read: {}", std::strerror(errno));
  if (file >= 0) ::close(file);
  if (!hash) return judged;
  judged.bytes_read = entry.size;
  store.learn(entry, {0, 0, 0, *hash, true, object});
  judged.good = *hash == row.hash;
  if (!judged.good)
    judged.why = row.was_read ? "it was written in place since"
                              : "it was written in place since, or was not what its distribution's "
                                "RECORD says already then";
  return judged;
}

// The object to take; empty: none has the bytes, and `why`.
std::string find_source(Store& store, const SnapshotFile& row, std::string& why,
                        uint64_t& bytes_read) {
  Judged own = judge_object(store, row.object, row);
  bytes_read += own.bytes_read;
  if (own.good) return row.object;
  why = own.why;
  for (const std::string& object : store.objects_with(row.hash)) {
    const Judged other = judge_object(store, object, row);
    bytes_read += other.bytes_read;
    if (other.good) return object;
  }
  return "";
}

class Restoring {
 public:
  Restoring(Store& store, const RestorePlan& plan, const Snapshot& now)
      : store_(store), plan_(plan), now_(now) {}

  Result<void> stage();
  Result<void> apply();
  Restored& restored() { return restored_; }

 private:
  std::string place(const std::string& path) const { return store_.prefix() + "/" + path; }
  std::string staged(size_t i) const { return store_.path(fmt::format("stage/{}", i)); }
  Result<void> stage_file(size_t i);
  disk::Outcome<> open_directories();
  disk::Outcome<> remove_names();
  disk::Outcome<> make_directories();
  disk::Outcome<> put_files();
  disk::Outcome<> close_directories();
  disk::Outcome<> set_directory(const SnapshotFile& row);

  Store& store_;
  const RestorePlan& plan_;
  const Snapshot& now_;
  std::map<std::string, uint32_t> opened_;  // directories whose permissions were in the way
  Restored restored_;
};

Result<void> Restoring::stage_file(size_t i) {
  const SnapshotFile& row = *plan_.files[i];
  if (row.kind == EntryKind::kLink) {
    if (auto made = disk::make_symlink(row.target, staged(i)); !made)
      return disk::to_error(made.error());
    return {};
  }
  std::string why;
  const std::string object = find_source(store_, row, why, restored_.bytes_read);
  if (object.empty()) return fail(fmt::format("{}: {}", escape_field(row.path), why));
  Entry entry;
  const bool is_there = look_at(store_.object_path(object), entry);
  // A link would take a file's last copy along with the next write in place. And it has the
  // inode's permissions and times: where they are others now (chmod, touch), giving
  // them back through the link would change an installer's cache that shares the inode.
  const bool may_link = is_there && has_attributes(entry, row) && !is_own_copy(object);
  const KnownInode* known = store_.find_known(entry);
  const KnownInode kept = known ? *known : KnownInode{0, 0, 0, row.hash, true, object};
  const auto way =
      store_.bring(store_.object_path(object), staged(i), attributes_of(row), may_link);
  if (!way) return disk::to_error(way.error());
  // The new link has changed the ctime; the bytes are the same.
  if (Entry after; look_at(staged(i), after)) store_.learn(after, kept);
  return {};
}

Result<void> Restoring::stage() {
  if (auto cleared = store_.clear_stage(); !cleared) return cleared;
  for (size_t i = 0; i < plan_.files.size(); i++) {
    const auto done = stage_file(i);
    if (done) continue;
    (void)store_.clear_stage();
    return fail(done.error().message + ": nothing was changed");
  }
  return {};
}

// Directories that even their owner may not write into.
disk::Outcome<> Restoring::open_directories() {
  std::set<std::string> touched;
  const auto touch = [&](const std::string& path) { touched.insert(directory_of(path)); };
  for (const std::string& path : plan_.removed_files) touch(path);
  for (const std::string& path : plan_.removed_directories) touch(path), touched.insert(path);
  for (const SnapshotFile* row : plan_.directories) touch(row->path);
  for (const SnapshotFile* row : plan_.files) touch(row->path);
  for (const SnapshotFile& row : now_.files) {
    if (row.kind != EntryKind::kDirectory || (row.mode & kOwnersBits) == kOwnersBits) continue;
    if (!touched.contains(row.path)) continue;
    if (auto done = disk::change_mode(place(row.path), row.mode | kOwnersBits); !done) return done;
    opened_[row.path] = row.mode;
  }
  return {};
}

disk::Outcome<> Restoring::remove_names() {
  for (const std::string& path : plan_.removed_files) {
    const auto done = disk::unlink(place(path));
    if (!done && done.error().number != ENOENT) return done;
    restored_.removed++;
  }
  for (const std::string& path : plan_.removed_directories) {
    const auto done = disk::remove_directory(place(path));
    if (done || done.error().number == ENOENT) continue;
    // A socket in it, or what somebody has written there since we looked.
    if (done.error().number != ENOTEMPTY && done.error().number != EEXIST) return done;
    restored_.left_alone.push_back(path);
  }
  return {};
}

disk::Outcome<> Restoring::set_directory(const SnapshotFile& row) {
  Entry entry;
  if (!look_at(place(row.path), entry)) return {};
  if ((entry.uid != row.uid || entry.gid != row.gid) && ::geteuid() == 0)
    if (auto done = disk::change_owner(place(row.path), row.uid, row.gid); !done) return done;
  return entry.mode == row.mode ? disk::Outcome<>{} : disk::change_mode(place(row.path), row.mode);
}

disk::Outcome<> Restoring::make_directories() {
  for (const SnapshotFile* row : plan_.directories) {
    const auto done = disk::make_directory(place(row->path), row->mode | kOwnersBits);
    if (!done && done.error().number != EEXIST) return done;
  }
  return {};
}

disk::Outcome<> Restoring::put_files() {
  for (size_t i = 0; i < plan_.files.size(); i++) {
    if (auto done = disk::rename(staged(i), place(plan_.files[i]->path)); !done) return done;
    restored_.written++;
  }
  return {};
}

// The deepest first: a directory that may not be entered keeps its permissions from us.
disk::Outcome<> Restoring::close_directories() {
  std::vector<const SnapshotFile*> rows = plan_.directories;
  rows.insert(rows.end(), plan_.modes.begin(), plan_.modes.end());
  std::sort(rows.begin(), rows.end(), [](auto* a, auto* b) { return a->path > b->path; });
  for (const SnapshotFile* row : rows) opened_.erase(row->path);
  for (auto at = opened_.rbegin(); at != opened_.rend(); at++)
    if (auto done = disk::change_mode(place(at->first), at->second);
        !done && done.error().number != ENOENT)
      return done;
  for (const SnapshotFile* row : rows)
    if (auto done = set_directory(*row); !done) return done;
  return {};
}

Result<void> Restoring::apply() {
  using Step = disk::Outcome<> (Restoring::*)();
  constexpr Step kSteps[] = {&Restoring::open_directories, &Restoring::remove_names,
                             &Restoring::make_directories, &Restoring::put_files,
                             &Restoring::close_directories};
  for (const Step step : kSteps)
    if (auto done = (this->*step)(); !done)
      return fail(
          fmt::format("{}: the environment is between two states; remove the cause and run "
                      "`cohabit restore --env {}`, which completes it",
                      done.error().message, shell_word(store_.prefix())));
  return {};
}

void plan_change(const FileChange& change, RestorePlan& plan) {
  const SnapshotFile* before = change.before;
  const SnapshotFile* after = change.after;
  const bool is_directory = before && before->kind == EntryKind::kDirectory;
  const bool becomes_directory = after && after->kind == EntryKind::kDirectory;
  if ((after && after->kind == EntryKind::kOther) ||
      (!after && before->kind == EntryKind::kOther)) {
    plan.left_alone.push_back(change.path());
    return;
  }
  if (is_directory && becomes_directory) {
    plan.modes.push_back(after);
    return;
  }
  if (is_directory) plan.removed_directories.push_back(before->path);
  if (before && !is_directory && (!after || becomes_directory))
    plan.removed_files.push_back(before->path);
  if (becomes_directory) plan.directories.push_back(after);
  if (after && !becomes_directory) plan.files.push_back(after);
}

// What is not as it should be now: somebody else writes there.
std::vector<std::string> find_disturbed(const Store& store, const Snapshot& wanted,
                                        const std::vector<std::string>& left_alone) {
  Snapshot now;
  const auto entries = walk_files(store.prefix(), store.names_left_out());
  if (!entries) return {};
  for (const Entry& entry : *entries) now.files.push_back(to_row(entry));
  const auto same = [](const SnapshotFile& a, const SnapshotFile& b) {
    return a.kind == b.kind && a.target == b.target && a.size == b.size && a.mode == b.mode &&
           (a.kind != EntryKind::kFile || a.modified == b.modified);
  };
  const std::set<std::string> known(left_alone.begin(), left_alone.end());
  std::vector<std::string> disturbed;
  for (const FileChange& change : compare_files(now, wanted, same))
    if (!known.contains(change.path())) disturbed.push_back(change.path());
  return disturbed;
}

}  // namespace

RestorePlan plan_restore(const Snapshot& now, const Snapshot& wanted) {
  RestorePlan plan;
  for (const FileChange& change : compare_files(now, wanted, same_file)) plan_change(change, plan);
  std::reverse(plan.removed_directories.begin(), plan.removed_directories.end());
  return plan;
}

std::vector<SpoiledFile> find_spoiled(Store& store, const RestorePlan& plan, uint64_t& bytes_read) {
  std::vector<SpoiledFile> spoiled;
  for (const SnapshotFile* row : plan.files) {
    if (row->kind != EntryKind::kFile) continue;
    SpoiledFile file{row->path, ""};
    if (find_source(store, *row, file.why, bytes_read).empty()) spoiled.push_back(std::move(file));
  }
  return spoiled;
}

std::string describe_spoiled(const std::vector<SpoiledFile>& spoiled, const Snapshot& wanted) {
  constexpr size_t kShown = 3;
  std::string text = fmt::format(
      "the bytes of {} file{} of the snapshot {} are gone, so nothing was changed:", spoiled.size(),
      spoiled.size() == 1 ? "" : "s", wanted.name);
  for (size_t i = 0; i < std::min(spoiled.size(), kShown); i++)
    text += fmt::format("\n  {}: {}", escape_field(spoiled[i].path), spoiled[i].why);
  if (spoiled.size() > kShown) text += fmt::format("\n  and {} more", spoiled.size() - kShown);
  return text;
}

void leave_lost(RestorePlan& plan, const std::vector<SpoiledFile>& lost) {
  std::set<std::string> paths;
  for (const SpoiledFile& file : lost) paths.insert(file.path);
  std::erase_if(plan.files, [&](const SnapshotFile* row) { return paths.contains(row->path); });
}

// In the journal of a restore: it leaves what is lost.
constexpr const char* kWithoutLost = "--without-lost";

Result<Restored> restore(Store& store, const Snapshot& now, const Snapshot& wanted,
                         const Refetch& refetch, Lost lost) {
  RestorePlan plan = plan_restore(now, wanted);
  Restoring restoring(store, plan, now);
  Restored& restored = restoring.restored();
  auto spoiled = find_spoiled(store, plan, restored.bytes_read);
  if (!spoiled.empty() && refetch) spoiled = refetch(store, wanted, std::move(spoiled));
  if (!spoiled.empty() && lost == Lost::kRefuse) return fail(describe_spoiled(spoiled, wanted));
  leave_lost(plan, spoiled);
  for (SpoiledFile& file : spoiled) restored.lost.push_back(std::move(file.path));
  if (auto staged = restoring.stage(); !staged) return tl::unexpected<Error>(staged.error());
  auto noted = store.write_journal(
      {Journal::Action::kRestore, wanted.name, lost == Lost::kLeave ? kWithoutLost : ""});
  // On a full disk the note that an install is under way does as well: it leads to the same end.
  const Journal journal = store.read_journal();
  if (!noted && (journal.action == Journal::Action::kNothing || journal.snapshot != wanted.name)) {
    (void)store.clear_stage();
    return fail(noted.error().message + ": nothing was changed");
  }
  if (auto applied = restoring.apply(); !applied) return tl::unexpected<Error>(applied.error());
  (void)store.clear_stage();
  (void)store.write_index();  // only saves reading later
  if (auto cleared = store.clear_journal(); !cleared) return tl::unexpected<Error>(cleared.error());
  restored.left_alone.insert(restored.left_alone.end(), plan.left_alone.begin(),
                             plan.left_alone.end());
  std::vector<std::string> expected = restored.left_alone;
  expected.insert(expected.end(), restored.lost.begin(), restored.lost.end());
  restored.disturbed = find_disturbed(store, wanted, expected);
  return std::move(restored);
}

static Result<std::vector<std::string>> complete_restore(Store& store, const FileClaims& claims,
                                                         const std::string& name,
                                                         const Refetch& refetch, Lost lost) {
  const auto wanted = store.read(name);
  if (!wanted) return tl::unexpected<Error>(wanted.error());
  const auto now = describe_environment(store, claims, {});
  if (!now) return tl::unexpected<Error>(now.error());
  auto done = restore(store, now->snapshot, *wanted, refetch, lost);
  if (!done) return tl::unexpected<Error>(done.error());
  return std::move(done->lost);
}

Result<std::string> complete_interrupted(Store& store, const FileClaims& claims,
                                         const Refetch& refetch, Lost lost) {
  const Journal journal = store.read_journal();
  if (journal.action == Journal::Action::kNothing) return std::string();
  if (journal.action == Journal::Action::kSnapshot) {
    (void)store.remove_unused_objects();
    if (auto cleared = store.clear_journal(); !cleared)
      return tl::unexpected<Error>(cleared.error());
    if (store.has(journal.snapshot)) return std::string();
    return fmt::format("the snapshot {} was interrupted and is not there", journal.snapshot);
  }
  if (journal.action == Journal::Action::kClean) return complete_cleaning(store, journal.snapshot);
  const bool is_install = journal.action == Journal::Action::kInstall;
  if (!is_install && journal.command == kWithoutLost) lost = Lost::kLeave;
  const auto left = complete_restore(store, claims, journal.snapshot, refetch, lost);
  if (!left)
    return fail(fmt::format(
        "what was interrupted cannot be completed: {}\n`cohabit restore --without-lost --env {}` "
        "restores all that can be, with --abandon in its place the environment stays as it is now",
        left.error().message, shell_word(store.prefix())));
  const std::string but =
      left->empty() ? "" : fmt::format("; not restored, its bytes are gone: {}", list_some(*left));
  return is_install
             ? fmt::format(
                   "`{}` was interrupted: the environment is again as before it (snapshot "
                   "{}){}",
                   journal.command, journal.snapshot, but)
             : fmt::format("the interrupted restore of {} is complete{}", journal.snapshot, but);
}

}  // namespace cohabit
