// What distributions of a snapshot say of themselves, laid out in a scratch directory, so that it
// is read as an environment's is.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "actions/snapshots/store.h"
#include "base/result.h"
#include "base/scratch.h"
#include "facts/python/distributions.h"
#include "facts/snapshots/snapshot.h"

namespace cohabit::locks {

struct KeptMetadata {
  std::unique_ptr<ScratchDirectory> scratch;  // stands for the prefix
  std::string site;                           // in it; empty: the snapshot has no dist-info
  Distributions distributions;
  std::string prefix() const { return scratch->path(); }
};

Result<KeptMetadata> read_kept_metadata(const Store& store, const Snapshot& snapshot);

// A file's bytes as the snapshot has them; nothing if they are gone or more than `limit`.
std::optional<std::string> read_kept(const Store& store, const SnapshotFile& row, size_t limit);

}  // namespace cohabit::locks
