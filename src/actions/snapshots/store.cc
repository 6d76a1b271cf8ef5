#include "actions/snapshots/store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <random>
#include <utility>

#include "actions/processes.h"
#include "base/changes.h"
#include "base/read_file.h"
#include "base/rows.h"
#include "base/tree.h"

namespace cohabit {
namespace {

constexpr std::string_view kIndexLine = "cohabit-index 1\n";
constexpr size_t kLargestText = size_t{4} << 30;
constexpr int64_t kRecent = 100'000'000;  // ns

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// The one that took the lock has written its number into it; its installer has the lock too, and
// may live longer.
std::string who_changes(const std::string& lock, const std::string& prefix) {
  const std::string written = Tree("").read_text(lock, 4096).value_or("");
  const std::vector<pid_t> users = find_users_of(lock);
  if (users.empty()) return fmt::format("another process is changing {}", prefix);
  for (const pid_t user : users)
    if (std::to_string(user) == written)
      return fmt::format("{} is changing {}", describe_process(user), prefix);
  return fmt::format(
      "{}, which is left of a cohabit that was killed (`kill {}` ends it), changes {}",
      describe_process(users[0]), users[0], prefix);
}

template <class Number>
bool read_number(std::string_view text, Number& number, int base = 10) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

tl::unexpected<Error> cannot_keep(const std::string& prefix, const disk::Failure& failure) {
  return fail(fmt::format("{}: the snapshots of {} are kept in {}/{}, which must be writable",
                          failure.message, prefix, prefix, Store::kDirectory));
}

Result<void> make_directory(const std::string& prefix, const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) return {};
    return fail(
        fmt::format("{} should be the directory of snapshots and is something else: move "
                    "it away",
                    path));
  }
  if (auto made = disk::make_directory(path, 0700); !made && made.error().number != EEXIST)
    return cannot_keep(prefix, made.error());
  return {};
}

std::string random_salt() {
  std::random_device random;
  std::string salt;
  for (int i = 0; i < 4; i++) salt += fmt::format("{:08x}", random());
  return salt;
}

std::string_view action_name(Journal::Action action) {
  static constexpr std::string_view kNames[] = {"none", "snapshot", "restore", "install", "clean"};
  return kNames[static_cast<size_t>(action)];
}

}  // namespace

Store::Store(Store&& other) noexcept
    : prefix_(std::move(other.prefix_)),
      lock_(std::exchange(other.lock_, -1)),
      salt_(std::move(other.salt_)),
      can_clone_(other.can_clone_),
      known_(std::move(other.known_)),
      objects_(std::move(other.objects_)) {}

Store::~Store() {
  if (lock_ >= 0) ::close(lock_);
}

std::string Store::path(const std::string& name) const {
  return fmt::format("{}/{}{}{}", prefix_, kDirectory, name.empty() ? "" : "/", name);
}

// 256 directories, by the digits of the inode that change most.
std::string Store::object_path(const std::string& object) const {
  const std::string inode = object.substr(0, object.find('-'));
  return fmt::format("{}/{}/objects/{:0>2}/{}", prefix_, kDirectory,
                     inode.substr(std::max<size_t>(inode.size(), 2) - 2), object);
}

Result<void> Store::make() {
  for (const char* name : {"", "objects", "snapshots", "stage"})
    if (auto made = make_directory(prefix_, path(name)); !made) return made;
  return {};
}

// The number of the process that holds the lock is written into it, for the others' message.
Result<void> Store::take_lock(Access access) {
  const bool changes = access == Access::kChange;
  const std::string file = path("lock");
  const int flags = (changes ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW;
  lock_ = ::open(file.c_str(), flags, 0600);
  if (lock_ < 0 && !changes && errno == ENOENT) return {};
  if (lock_ < 0) return fail(fmt::format("cannot open {}: {}", file, std::strerror(errno)));
  if (::flock(lock_, (changes ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
    ::close(std::exchange(lock_, -1));
    return fail(
        fmt::format("{} at this moment: wait until it has ended", who_changes(file, prefix_)));
  }
  if (changes && ::ftruncate(lock_, 0) == 0) {
    const std::string me = std::to_string(::getpid());
    (void)!::pwrite(lock_, me.data(), me.size(), 0);
  }
  return {};
}

Result<Store> Store::open(const std::string& prefix, Access access) {
  Store store;
  store.prefix_ = prefix;
  struct stat status{};
  const bool is_there = ::lstat(store.path("").c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  if (access == Access::kRead && !is_there) return store;
  if (access == Access::kChange)
    if (auto made = store.make(); !made) return tl::unexpected<Error>(made.error());
  if (auto locked = store.take_lock(access); !locked) return tl::unexpected<Error>(locked.error());
  store.read_index();
  if (store.salt_.empty()) store.salt_ = random_salt();
  return store;
}

// ---- journal

Journal Store::read_journal() const {
  Journal journal;
  const auto text = Tree("").read_text(path("journal"), 1 << 20);
  if (!text) return journal;
  for (const TableRow& row : table_rows(*text, 3)) {
    for (const auto action : {Journal::Action::kSnapshot, Journal::Action::kRestore,
                              Journal::Action::kInstall, Journal::Action::kClean})
      if (row[0] == action_name(action)) journal.action = action;
    journal.snapshot = unescape_field(row[1]);
    journal.command = unescape_field(row[2]);
  }
  return journal;
}

Result<void> Store::write_journal(const Journal& journal) {
  const std::string text =
      fmt::format("{}\t{}\t{}\n", action_name(journal.action), escape_field(journal.snapshot),
                  escape_field(journal.command));
  if (auto written = disk::replace(path("journal"), text); !written)
    return cannot_keep(prefix_, written.error());
  return {};
}

Result<void> Store::clear_journal() const {
  const auto removed = disk::unlink(path("journal"));
  if (!removed && removed.error().number != ENOENT) return disk::to_error(removed.error());
  return {};
}

// ---- snapshots

std::vector<std::string_view> Store::names_left_out() const {
  std::vector<std::string_view> names = {kDirectory};
  if (::access((prefix_ + "/conda-meta").c_str(), F_OK) == 0)
    names.insert(names.end(), {"envs", "pkgs"});
  return names;
}

bool Store::has(const std::string& name) const {
  return check_snapshot_name(name) && ::access(path("snapshots/" + name).c_str(), F_OK) == 0;
}

std::vector<std::string> Store::names() const {
  std::vector<std::pair<int64_t, std::string>> found;
  for (const std::string& name : Tree("").list(path("snapshots"))) {
    Entry entry;
    if (check_snapshot_name(name) && look_at(path("snapshots/" + name), entry))
      found.emplace_back(entry.modified, name);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (auto& [time, name] : found) names.push_back(std::move(name));
  return names;
}

Result<Snapshot> Store::read(const std::string& name, bool with_files) const {
  if (auto good = check_snapshot_name(name); !good) return tl::unexpected<Error>(good.error());
  const std::string file = path("snapshots/" + name);
  const auto text = read_file(file, kLargestText);
  if (!text) return tl::unexpected<Error>(text.error());
  auto snapshot = parse_snapshot(*text, with_files);
  if (!snapshot) return fail(fmt::format("{}: {}", file, snapshot.error().message));
  snapshot->name = name;
  return snapshot;
}

Result<void> Store::write(const Snapshot& snapshot) const {
  const std::string file = path("snapshots/" + snapshot.name);
  if (auto written = disk::replace(file, format_snapshot(snapshot)); !written)
    return disk::to_error(written.error());
  return {};
}

Result<void> Store::remove(const std::string& name) const {
  if (auto removed = disk::unlink(path("snapshots/" + name)); !removed)
    return disk::to_error(removed.error());
  return {};
}

Result<void> Store::clear_stage() const {
  for (const std::string& name : Tree("").list(path("stage")))
    if (auto removed = disk::remove_all(path("stage/" + name)); !removed)
      return disk::to_error(removed.error());
  return {};
}

Result<void> Store::remove_unused_objects(const std::vector<std::string>& leaving) {
  std::unordered_set<std::string> used;
  for (const std::string& name : names()) {
    if (std::find(leaving.begin(), leaving.end(), name) != leaving.end()) continue;
    const auto snapshot = read(name);
    // What a damaged snapshot needs is not known: nothing can go.
    if (!snapshot && leaving.empty()) return tl::unexpected<Error>(snapshot.error());
    if (!snapshot)
      return fail(fmt::format(
          "{}: which bytes it holds is not known, so nothing was removed; remove it too",
          snapshot.error().message));
    for (const SnapshotFile& file : snapshot->files) used.insert(file.object);
  }
  for (const std::string& name : leaving)
    if (auto removed = remove(name); !removed) return removed;
  for (const std::string& object : objects())
    if (!used.contains(object))
      if (auto removed = disk::unlink(object_path(object)); !removed)
        return disk::to_error(removed.error());
  objects_.reset();
  std::erase_if(known_, [&](const auto& entry) { return !used.contains(entry.second.object); });
  return write_index();
}

const std::unordered_set<std::string>& Store::objects() {
  if (objects_) return *objects_;
  objects_.emplace();
  const Tree tree("");
  for (const std::string& directory : tree.list(path("objects")))
    for (std::string& name : tree.list(path("objects/" + directory)))
      objects_->insert(std::move(name));
  return *objects_;
}

Result<void> Store::make_object_directory(const std::string& object) {
  const std::string file = object_path(object);
  return make_directory(prefix_, file.substr(0, file.rfind('/')));
}

bool Store::is_object_of(const std::string& object, const Entry& entry) const {
  Entry found;
  return look_at(object_path(object), found) && found.inode == entry.inode &&
         found.device == entry.device;
}

disk::Outcome<Store::Way> Store::bring(const std::string& from, const std::string& to,
                                       const disk::Attributes& attributes, bool may_link) {
  const auto is_final = [](int number) {
    return number == ENOSPC || number == EDQUOT || number == ENOENT || number == EROFS;
  };
  if (can_clone_) {
    auto cloned = disk::clone(from, to, attributes);
    if (cloned) return Way::kCloned;
    if (is_final(cloned.error().number)) return tl::unexpected(cloned.error());
    can_clone_ = false;
  }
  if (may_link) {
    auto linked = disk::link(from, to);
    if (linked) return Way::kLinked;
    // Too many links, another file system below the environment, one without links, somebody
    // else's file (fs.protected_hardlinks).
    if (is_final(linked.error().number)) return tl::unexpected(linked.error());
  }
  if (auto copied = disk::copy(from, to, attributes); !copied)
    return tl::unexpected(copied.error());
  return Way::kCopied;
}

bool is_own_copy(std::string_view object) {
  return object.find("-c") != object.npos;
}

std::string object_name(uint64_t inode, int n, bool is_own_copy) {
  if (is_own_copy) return fmt::format("{:x}-c{}", inode, n);
  return n == 0 ? fmt::format("{:x}", inode) : fmt::format("{:x}-{}", inode, n);
}

// ---- index

const KnownInode* Store::remembered(const Entry& entry) const {
  const auto found = known_.find(entry.inode);
  return found == known_.end() ? nullptr : &found->second;
}

const KnownInode* Store::find_known(const Entry& entry) const {
  const KnownInode* known = remembered(entry);
  const bool same = known && known->size == entry.size && known->modified == entry.modified &&
                    known->changed == entry.changed;
  return same ? known : nullptr;
}

// A write within one tick of the clock that stamps files would not be seen: what was written just
// now is not known until it has rested.
void Store::learn(const Entry& entry, const KnownInode& known) {
  if (entry.modified > now() - kRecent) {
    known_.erase(entry.inode);
    return;
  }
  KnownInode& kept = known_[entry.inode] = known;
  kept.size = entry.size;
  kept.modified = entry.modified;
  kept.changed = entry.changed;
}

std::vector<std::string> Store::objects_with(const Sha256& hash) const {
  std::vector<std::string> result;
  for (const auto& [inode, known] : known_)
    if (known.was_read && known.hash == hash) result.push_back(known.object);
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

void Store::read_index() {
  const auto text = read_file(path("index"), kLargestText);
  if (!text || !text->starts_with(kIndexLine)) return;
  for (const TableRow& row : table_rows(*text, 2)) {
    if (row[0] == "salt") salt_ = row[1];
    if (row.size() != 7) continue;
    uint64_t inode = 0;
    KnownInode known;
    const auto hash = parse_hexadecimal(row[4]);
    if (!read_number(row[0], inode) || !read_number(row[1], known.size) ||
        !read_number(row[2], known.modified) || !read_number(row[3], known.changed) || !hash ||
        !is_object_name(row[6]))
      continue;
    known.hash = *hash;
    known.was_read = row[5] == "read";
    known.object = row[6];
    known_.emplace(inode, std::move(known));
  }
}

Result<void> Store::write_index() const {
  std::string text(kIndexLine);
  auto to = std::back_inserter(text);
  fmt::format_to(to, "salt\t{}\n", salt_);
  for (const auto& [inode, known] : known_)
    fmt::format_to(to, "{}\t{}\t{}\t{}\t{}\t{}\t{}\n", inode, known.size, known.modified,
                   known.changed, hexadecimal(known.hash), known.was_read ? "read" : "claimed",
                   known.object);
  if (auto written = disk::replace(path("index"), text); !written)
    return disk::to_error(written.error());
  return {};
}

}  // namespace cohabit
