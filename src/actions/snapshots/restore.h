// Making an environment what it was.
//
// First everything that takes space is made ready in the store: a full disk stops that without
// harm. Then the journal says what is to become of the environment, and only names are changed: old
// ones removed, directories made, files renamed into place. Killed in between, the next command
// looks at what is there and does the rest; it needs no memory of how far the first one came.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "actions/snapshots/store.h"
#include "base/result.h"
#include "facts/snapshots/difference.h"
#include "facts/snapshots/snapshot.h"

namespace cohabit {

struct RestorePlan {
  std::vector<std::string> removed_files;        // links too
  std::vector<std::string> removed_directories;  // the deepest first
  std::vector<const SnapshotFile*> directories;  // that are missing, parents first
  std::vector<const SnapshotFile*> files;        // and links, that are missing or differ
  std::vector<const SnapshotFile*> modes;        // directories that differ in permissions or owner
  std::vector<std::string> left_alone;           // sockets, devices and pipes of either side
  bool empty() const {
    return removed_files.empty() && removed_directories.empty() && directories.empty() &&
           files.empty() && modes.empty();
  }
};

// Refers to `wanted`.
RestorePlan plan_restore(const Snapshot& now, const Snapshot& wanted);

struct Restored {
  size_t written = 0, removed = 0;
  uint64_t bytes_read = 0;              // to be sure of bytes whose inode changed
  std::vector<std::string> left_alone;  // sockets and the like, and directories that hold some
  std::vector<std::string> disturbed;   // what somebody else has written meanwhile
  std::vector<std::string> lost;        // whose bytes are gone: they stay as they are
};

// A file whose bytes are gone: it was written in place, through a name that shared them.
struct SpoiledFile {
  std::string path;
  std::string why;
};

// The bytes of every file of the plan are there; else those that are not.
std::vector<SpoiledFile> find_spoiled(Store& store, const RestorePlan& plan, uint64_t& bytes_read);

// Has the bytes of spoiled files brought into the store again; gives back those that cannot be had.
using Refetch = std::function<std::vector<SpoiledFile>(Store& store, const Snapshot& wanted,
                                                       std::vector<SpoiledFile> spoiled)>;

// What becomes of all others where the bytes of some files are gone: nothing, or they are restored.
enum class Lost { kRefuse, kLeave };

// Takes these files out of the plan.
void leave_lost(RestorePlan& plan, const std::vector<SpoiledFile>& lost);

// `now`: what is there, as described under the same lock. `refetch` may be empty.
Result<Restored> restore(Store& store, const Snapshot& now, const Snapshot& wanted,
                         const Refetch& refetch, Lost lost = Lost::kRefuse);

// The sentence about spoiled files; `wanted`: of which they are.
std::string describe_spoiled(const std::vector<SpoiledFile>& spoiled, const Snapshot& wanted);

}  // namespace cohabit
