// Taking a snapshot: what is there, what its bytes are, and keeping hold of them.
#pragma once

#include <string>
#include <vector>

#include "actions/snapshots/restore.h"
#include "actions/snapshots/store.h"
#include "base/result.h"
#include "facts/python/file_claims.h"
#include "facts/snapshots/snapshot.h"

namespace cohabit {

struct TakeOptions {
  bool full = false;  // read all files, whatever is known or claimed
};

struct Taken {
  Snapshot snapshot;
  size_t files_read = 0, files_claimed = 0, files_known = 0;
  uint64_t bytes_read = 0;
  size_t copies = 0;
  uint64_t bytes_not_shared = 0;  // copied, since they could not be linked
  // Files that were written in place since an earlier snapshot linked them: that one cannot give
  // their bytes back.
  std::vector<std::string> spoiled;
  std::vector<std::string> others;  // sockets, devices, pipes: not kept
};

// What the environment is, without keeping anything: files have no object.
Result<Taken> describe_environment(Store& store, const FileClaims& claims,
                                   const TakeOptions& options);

// The same, kept under this name. The environment is not changed but for the link counts of files.
Result<Taken> take_snapshot(Store& store, const FileClaims& claims, const std::string& name,
                            SnapshotNotes notes, const TakeOptions& options);

// A name for a snapshot that nobody named: the time, and what it is for.
std::string new_snapshot_name(const Store& store, const std::string& purpose);

// Completes what was stopped in the middle: says what was done, or nothing.
Result<std::string> complete_interrupted(Store& store, const FileClaims& claims,
                                         const Refetch& refetch, Lost lost);

}  // namespace cohabit
