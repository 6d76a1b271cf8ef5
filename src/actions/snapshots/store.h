// Where the snapshots of an environment are kept: ENV/.cohabit, so that they are on the file system
// of the environment, move with it and go with it (docs/design/guard.md).
//
//   lock            held while something is changed; the installer that guard runs holds it too
//   journal         what is being changed: the next command completes it
//   objects/ab/ID   the bytes of files: hard links to the environment's own, clones, or copies
//   index           what is known about inodes: their bytes' hash, and the object that holds them
//   snapshots/NAME  one text each (snapshot.h)
//   stage/          files on their way into the environment
//   cleaned/ID/     what a clean has put away (cleaning.h)
//
// A file's bytes are known by its inode: as long as size, mtime and ctime of the inode are those at
// which its hash was known, the hash is. Every write changes ctime, and no program can set it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/changes.h"
#include "base/result.h"
#include "base/sha256.h"
#include "facts/files/walk.h"
#include "facts/snapshots/snapshot.h"

namespace cohabit {

// What is under way.
struct Journal {
  enum class Action { kNothing, kSnapshot, kRestore, kInstall, kClean };
  Action action = Action::kNothing;
  // That is restored, or to which a stopped install is taken back; of kClean: its name.
  std::string snapshot;
  std::string command;  // of an install; of a restore, whether it leaves what is lost
};

// What is known about an inode.
struct KnownInode {
  uint64_t size = 0;
  int64_t modified = 0, changed = 0;
  Sha256 hash{};
  bool was_read = false;
  std::string object;
};

// Whether an object was copied from a file that may be written in place, so that nothing else may
// share its inode. The name tells.
bool is_own_copy(std::string_view object);
// The nth object that was made of a file with this inode.
std::string object_name(uint64_t inode, int n, bool is_own_copy);

class Store {
 public:
  enum class Access { kRead, kChange };
  static constexpr const char* kDirectory = ".cohabit";

  // `prefix`: without symlinks. Makes the store for kChange. Fails if somebody else holds it.
  static Result<Store> open(const std::string& prefix, Access access);
  Store(Store&& other) noexcept;
  Store(const Store&) = delete;
  ~Store();

  const std::string& prefix() const { return prefix_; }
  std::string path(const std::string& name) const;  // "index" -> ENV/.cohabit/index
  std::string object_path(const std::string& object) const;
  bool exists() const { return lock_ >= 0; }
  // The descriptor of the lock; a process that inherits it holds the lock too.
  int lock() const { return lock_; }

  Journal read_journal() const;
  Result<void> write_journal(const Journal& journal);
  Result<void> clear_journal() const;

  // Names in the environment that are no part of it: the store; of a conda installation also its
  // other environments and its cache of packages.
  std::vector<std::string_view> names_left_out() const;

  bool has(const std::string& name) const;
  // Names of snapshots, the oldest first.
  std::vector<std::string> names() const;
  Result<Snapshot> read(const std::string& name, bool with_files = true) const;
  Result<void> write(const Snapshot& snapshot) const;
  Result<void> remove(const std::string& name) const;
  // Removes these snapshots, and objects that no other one names; nothing where that is not known.
  Result<void> remove_unused_objects(const std::vector<std::string>& leaving = {});
  Result<void> clear_stage() const;

  // What is known about this file as it is now; nullptr if it has to be read.
  const KnownInode* find_known(const Entry& entry) const;
  // What was known of its inode, however it is now.
  const KnownInode* remembered(const Entry& entry) const;
  void learn(const Entry& entry, const KnownInode& known);
  Result<void> write_index() const;
  // The objects that are there; read once.
  const std::unordered_set<std::string>& objects();
  void add_object(const std::string& object) { objects_->insert(object); }
  Result<void> make_object_directory(const std::string& object);
  // The object is this very file, by another name.
  bool is_object_of(const std::string& object, const Entry& entry) const;
  // Gives a file's bytes another name: a clone where the file system has clones, which nobody can
  // write into through the first one; else a link, if it may be one; else a copy.
  enum class Way { kCloned, kLinked, kCopied };
  disk::Outcome<Way> bring(const std::string& from, const std::string& to,
                           const disk::Attributes& attributes, bool may_link);
  // Another object of the same content; nothing if there is none.
  std::vector<std::string> objects_with(const Sha256& hash) const;
  // For hashes of values: one number for each store, which makes guessing them useless elsewhere.
  const std::string& salt() const { return salt_; }

 private:
  Store() = default;
  Result<void> make();
  Result<void> take_lock(Access access);
  void read_index();

  std::string prefix_;
  int lock_ = -1;
  std::string salt_;
  bool can_clone_ = true;  // until it is refused
  std::unordered_map<uint64_t, KnownInode> known_;
  std::optional<std::unordered_set<std::string>> objects_;
};

}  // namespace cohabit
