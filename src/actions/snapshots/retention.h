// Which snapshots go by themselves: those that nobody asked for, but the newest.
#pragma once

#include <string>
#include <vector>

#include "actions/snapshots/store.h"
#include "base/result.h"

namespace cohabit {

constexpr size_t kKeptAutomatic = 10;

// `needed`: not these.
Result<void> prune_automatic(Store& store, const std::vector<std::string>& needed);

}  // namespace cohabit
