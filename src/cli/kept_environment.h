// An environment whose files are kept: what the commands about snapshots share.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actions/snapshots/restore.h"
#include "actions/snapshots/store.h"
#include "facts/python/distributions.h"
#include "facts/python/file_claims.h"
#include "facts/python/interpreter.h"
#include "facts/snapshots/snapshot.h"
#include "findings/finding.h"

namespace cohabit {

struct KeptEnvironment {
  std::string prefix;  // without symlinks
  Interpreter python;
  Distributions distributions;
  FileClaims claims;
};

// `place` as find_interpreter takes it. Refuses what belongs to the system.
Result<KeptEnvironment> find_kept_environment(const std::string& place);
// As it is now: something was completed in it.
Result<void> read_again(KeptEnvironment& environment);
// Opens its store and completes what was interrupted, which it says on stderr; the environment is
// read again then.
Result<Store> open_store(KeptEnvironment& environment, Store::Access access,
                         Lost lost = Lost::kRefuse);
// The same, to change it, of the store below another directory than the prefix; the environment
// stays as it was read.
Result<Store> open_and_complete(const KeptEnvironment& environment, const std::string& root,
                                Lost lost = Lost::kRefuse);

// Whether a change of what is kept below `prefix` was interrupted there.
bool is_interrupted(const std::string& prefix);
// A sentence for commands that complete nothing: somebody is changing this environment, or was
// interrupted. Empty: no.
std::string halfway_changed(const std::string& prefix);
// The same as an error.
Result<void> check_whole(const std::string& prefix);

// "cohabit restore NAME --env ENV": as it can be typed anywhere.
std::string restore_command_of(const std::string& prefix, const std::string& name);

// Spoiled bytes are fetched again by the environment's installer; what was fetched is said on
// stderr.
Refetch refetch_of(const KeptEnvironment& environment);

// What doctor says of it.
struct Examination {
  std::string of;  // "files", or "orders": those too
  std::vector<Finding> findings;
  std::vector<std::string> fingerprints;        // of the findings
  std::map<std::string, std::string> verdicts;  // by imports, "torch, tensorflow"
};
Result<Examination> examine_kept(const KeptEnvironment& environment, bool orders);

SnapshotNotes notes_of(const KeptEnvironment& environment, const Examination& examination,
                       const std::string& salt);
std::vector<SnapshotPackage> packages_of(const KeptEnvironment& environment);

}  // namespace cohabit
