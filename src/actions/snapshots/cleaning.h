// Putting files away so that they can be put back: they are renamed into
// ROOT/.cohabit/cleaned/ID, where `list` says what was where. No byte is copied or freed.
//
//   cohabit-cleaned 1 STATE     going, away, returning
//   PATH                        below ROOT, escaped; the n-th path is ROOT/.cohabit/cleaned/ID/n
//
// The store's journal and the list are written before the first rename; the state says which way to
// complete it.
#pragma once

#include <string>
#include <vector>

#include "actions/snapshots/store.h"
#include "base/result.h"

namespace cohabit {

// What was put away at one time and is still there; the oldest first.
std::vector<std::string> cleanings(const std::string& root);
std::string new_cleaning_name(const std::string& root);

// `paths`: absolute, below the store's prefix. After a failure everything is where it was, or the
// sentence says what is not.
Result<void> put_away(Store& store, const std::string& id, const std::vector<std::string>& paths);
// Fails, and changes nothing, if something is again where one of them belongs: directories that are
// there again are merged, of bytecode the one that is there is kept.
Result<void> put_back(Store& store, const std::string& id);
// Removes them for good.
Result<void> forget_cleaning(Store& store, const std::string& id);
// Does the rest of what was killed in the middle; says what that was, or nothing.
Result<std::string> complete_cleaning(Store& store, const std::string& id);

}  // namespace cohabit
