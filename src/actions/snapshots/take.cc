// The order of things is what makes a snapshot true. A file's hash is known by its inode, claimed
// by an installer, or read between two looks at the file that must agree. Then its bytes are kept,
// and a third look must find the same inode with the same size and mtime. At last everything is
// walked again: what has changed meanwhile is done again, so that there was a moment at which all
// files were as the snapshot says.
#include "actions/snapshots/take.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/changes.h"
#include "base/clock.h"
#include "base/together.h"

namespace cohabit {
namespace {

constexpr int kAttempts = 4;

bool same_bytes_expected(const Entry& a, const Entry& b) {
  return a.kind == b.kind && a.inode == b.inode && a.size == b.size && a.modified == b.modified;
}

// Nothing of it that a snapshot holds has changed.
bool same_entry(const Entry& a, const Entry& b) {
  const bool same = a.path == b.path && a.kind == b.kind && a.mode == b.mode && a.uid == b.uid &&
                    a.gid == b.gid && a.target == b.target;
  return same && (a.kind != EntryKind::kFile || same_bytes_expected(a, b));
}

struct Reading {
  enum class Outcome { kRead, kChanged, kFailed };
  Outcome outcome = Outcome::kFailed;
  Sha256 hash{};
  int error = 0;
};

Reading read_hash(const std::string& path, const Entry& expected) {
  Reading reading;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) {
    reading.error = errno;
    if (errno == ENOENT || errno == ELOOP) reading.outcome = Reading::Outcome::kChanged;
    return reading;
  }
  const auto hash = sha256_of_descriptor(file);
  reading.error = errno;
  ::close(file);
  if (!hash) return reading;
  reading.hash = *hash;
  Entry after;
  const bool same = look_at(path, after) && same_bytes_expected(expected, after) &&
                    after.changed == expected.changed;
  reading.outcome = same ? Reading::Outcome::kRead : Reading::Outcome::kChanged;
  return reading;
}

// One attempt at a snapshot.
class Taking {
 public:
  Taking(Store& store, const FileClaims& claims, const TakeOptions& options, bool keep)
      : store_(store), claims_(claims), options_(options), keep_(keep) {}

  // False: files were changed meanwhile.
  Result<bool> attempt();
  Taken& taken() { return taken_; }
  const std::string& last_change() const { return last_change_; }

 private:
  std::string place(const Entry& entry) const { return store_.prefix() + "/" + entry.path; }
  void find_hashes(std::vector<size_t>& unread);
  Result<bool> read_files(const std::vector<size_t>& unread);
  void take_reading(size_t index, const Reading& reading);
  Result<bool> keep_all();
  Result<bool> keep_file(size_t index);
  bool may_be_written_in_place(const Entry& entry) const;
  Result<std::string> hold(const Entry& entry);
  bool changed(const Entry& entry) {
    last_change_ = entry.path;
    return false;
  }

  Store& store_;
  const FileClaims& claims_;
  const TakeOptions& options_;
  const bool keep_;
  std::vector<Entry> entries_;
  Taken taken_;
  uint64_t device_ = 0;
  std::string last_change_;
};

// Those that are known and those that are claimed; the others are to be read.
void Taking::find_hashes(std::vector<size_t>& unread) {
  for (size_t i = 0; i < entries_.size(); i++) {
    const Entry& entry = entries_[i];
    SnapshotFile& row = taken_.snapshot.files.emplace_back(to_row(entry));
    if (entry.kind == EntryKind::kOther) taken_.others.push_back(entry.path);
    if (entry.kind != EntryKind::kFile) continue;
    const KnownInode* known = entry.device == device_ ? store_.find_known(entry) : nullptr;
    if (known) row.object = known->object;
    if (known && (!options_.full || known->was_read)) {
      row.hash = known->hash;
      row.was_read = known->was_read;
      taken_.files_known++;
      if (!options_.full) continue;
    } else if (const auto claim = claims_.believed(entry); claim && !options_.full) {
      // An inode that was known and has another ctime now has to be read: RECORD is no witness
      // of what happened after it was written.
      if (!store_.remembered(entry)) {
        row.hash = *claim;
        taken_.files_claimed++;
        continue;
      }
    }
    unread.push_back(i);
  }
}

void Taking::take_reading(size_t index, const Reading& reading) {
  const Entry& entry = entries_[index];
  SnapshotFile& row = taken_.snapshot.files[index];
  row.hash = reading.hash;
  row.was_read = true;
  taken_.files_read++;
  taken_.bytes_read += entry.size;
  if (entry.device != device_) return;
  const KnownInode* before = store_.remembered(entry);
  if (before && store_.is_object_of(before->object, entry)) {
    if (before->hash != row.hash) taken_.spoiled.push_back(entry.path);
    row.object = before->object;  // the same inode: what holds it holds the new bytes
  }
  store_.learn(entry, {0, 0, 0, row.hash, true, row.object});  // not read again if tried again
}

Result<bool> Taking::read_files(const std::vector<size_t>& unread) {
  constexpr size_t kMostThreads = 4;
  std::vector<Reading> readings(unread.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < unread.size(); i = next++)
      readings[i] = read_hash(place(entries_[unread[i]]), entries_[unread[i]]);
  };
  constexpr size_t kFewFiles = 16;
  const size_t threads = unread.size() < kFewFiles ? 1 : std::min(processors(), kMostThreads);
  std::vector<std::thread> others;
  for (size_t i = 1; i < threads; i++) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  bool steady = true;
  for (size_t i = 0; i < unread.size(); i++) {
    const Entry& entry = entries_[unread[i]];
    if (readings[i].outcome == Reading::Outcome::kFailed)
      return fail(fmt::format("cannot read {}: {}: a snapshot without it would not be whole",
                              place(entry), std::strerror(readings[i].error)));
    if (readings[i].outcome == Reading::Outcome::kChanged)
      steady = changed(entry);
    else
      take_reading(unread[i], readings[i]);
  }
  return steady;
}

// Small files that no installer claims are the ones that are written in place: hooks (.pth),
// scripts and settings, the user's own modules, conda's history. They get a copy. So do scripts
// that installers claim: they make them, and no wheel has their bytes.
bool Taking::may_be_written_in_place(const Entry& entry) const {
  constexpr uint64_t kSmall = 64 << 10;
  const bool is_made = entry.path.starts_with("bin/") || !claims_.contains(entry.path);
  return entry.size <= kSmall && is_made && !entry.path.ends_with(".pyc");
}

// The object that holds this file's bytes from now on; empty: the file is gone.
Result<std::string> Taking::hold(const Entry& entry) {
  const disk::Attributes attributes = {entry.mode, entry.uid, entry.gid, entry.modified};
  const bool may_link = !may_be_written_in_place(entry);
  std::string object = object_name(entry.inode, 0, !may_link);
  for (int i = 1; store_.objects().contains(object); i++) {
    if (may_link && store_.is_object_of(object, entry)) return object;
    object = object_name(entry.inode, i, !may_link);
  }
  if (auto made = store_.make_object_directory(object); !made)
    return tl::unexpected<Error>(made.error());
  const auto way = store_.bring(place(entry), store_.object_path(object), attributes, may_link);
  if (!way && way.error().number == ENOENT) return std::string();
  if (!way) return fail(way.error().message + ": the snapshot was not made, nothing is lost");
  if (*way == Store::Way::kCopied) {
    taken_.copies++;
    if (may_link) taken_.bytes_not_shared += entry.size;
  }
  store_.add_object(object);
  return object;
}

Result<bool> Taking::keep_file(size_t index) {
  const Entry& entry = entries_[index];
  SnapshotFile& row = taken_.snapshot.files[index];
  // One that shares its inode with what may be written in place holds nothing.
  const bool held = !row.object.empty() && store_.objects().contains(row.object) &&
                    !(may_be_written_in_place(entry) && store_.is_object_of(row.object, entry));
  if (held && entry.device == device_ && store_.find_known(entry)) return true;
  if (!held) {
    auto object = hold(entry);
    if (!object) return tl::unexpected<Error>(object.error());
    if (object->empty()) return changed(entry);
    row.object = *object;
  }
  Entry kept, after;
  if (!look_at(store_.object_path(row.object), kept) || kept.size != entry.size ||
      kept.modified != entry.modified)
    return changed(entry);
  const KnownInode known = {0, 0, 0, row.hash, row.was_read, row.object};
  store_.learn(kept, known);
  if (kept.inode == entry.inode && kept.device == entry.device) return true;
  if (!look_at(place(entry), after) || !same_bytes_expected(entry, after)) return changed(entry);
  if (entry.device == device_) store_.learn(after, known);
  return true;
}

Result<bool> Taking::keep_all() {
  bool steady = true;
  for (size_t i = 0; i < entries_.size(); i++) {
    if (entries_[i].kind != EntryKind::kFile) continue;
    const auto kept = keep_file(i);
    if (!kept) return kept;
    steady = steady && *kept;
  }
  return steady;
}

Result<bool> Taking::attempt() {
  const auto skipped = store_.names_left_out();
  auto entries = walk_files(store_.prefix(), skipped);
  if (!entries) return tl::unexpected<Error>(entries.error());
  entries_ = std::move(*entries);
  Entry top;
  if (look_at(store_.prefix() + "/.", top)) device_ = top.device;
  taken_.snapshot.files.clear();
  taken_.others.clear();
  taken_.files_known = taken_.files_claimed = 0;
  std::vector<size_t> unread;
  find_hashes(unread);
  auto steady = read_files(unread);
  if (!steady) return steady;
  if (*steady && keep_) steady = keep_all();
  if (!steady || !*steady) return steady;
  const auto again = walk_files(store_.prefix(), skipped);
  if (!again) return tl::unexpected<Error>(again.error());
  const auto [mine, theirs] =
      std::mismatch(entries_.begin(), entries_.end(), again->begin(), again->end(), same_entry);
  if (mine != entries_.end()) return changed(*mine);
  if (theirs != again->end()) return changed(*theirs);
  return true;
}

Result<Taken> take(Store& store, const FileClaims& claims, const TakeOptions& options, bool keep) {
  Taking taking(store, claims, options, keep);
  for (int i = 0; i < kAttempts; i++) {
    const auto steady = taking.attempt();
    if (!steady) return tl::unexpected<Error>(steady.error());
    if (*steady) return std::move(taking.taken());
  }
  return fail(
      fmt::format("{} keeps changing while it is read (last: {}): end what installs or "
                  "writes there and try again",
                  store.prefix(), escape_field(taking.last_change())));
}

}  // namespace

Result<Taken> describe_environment(Store& store, const FileClaims& claims,
                                   const TakeOptions& options) {
  return take(store, claims, options, false);
}

Result<Taken> take_snapshot(Store& store, const FileClaims& claims, const std::string& name,
                            SnapshotNotes notes, const TakeOptions& options) {
  if (auto good = check_snapshot_name(name); !good) return tl::unexpected<Error>(good.error());
  if (store.has(name))
    return fail(
        fmt::format("there is a snapshot {} already: choose another name, or remove it with "
                    "`cohabit snapshots --remove {}`",
                    name, name));
  const bool alone = store.read_journal().action == Journal::Action::kNothing;
  if (alone)
    if (auto noted = store.write_journal({Journal::Action::kSnapshot, name, ""}); !noted)
      return tl::unexpected<Error>(noted.error());
  auto taken = take(store, claims, options, true);
  if (taken) {
    taken->snapshot.name = name;
    taken->snapshot.made = time_now("%Y-%m-%dT%H:%M:%SZ");
    taken->snapshot.prefix = store.prefix();
    taken->snapshot.notes = std::move(notes);
    Result<void> written;
    if (taken->copies > 0)
      if (auto flushed = disk::flush(store.path("")); !flushed)
        written = disk::to_error(flushed.error());
    if (written) written = store.write_index();
    if (written) written = store.write(taken->snapshot);
    if (!written)
      taken = fail(written.error().message + ": the snapshot was not made, nothing is lost");
  }
  if (!taken) (void)store.remove_unused_objects();
  if (alone) (void)store.clear_journal();
  return taken;
}

std::string new_snapshot_name(const Store& store, const std::string& purpose) {
  return name_by_time(purpose, [&](const std::string& name) { return store.has(name); });
}

}  // namespace cohabit
