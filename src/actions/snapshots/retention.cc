#include "actions/snapshots/retention.h"

#include <algorithm>

namespace cohabit {

Result<void> prune_automatic(Store& store, const std::vector<std::string>& needed) {
  std::vector<std::string> automatic;
  for (const std::string& name : store.names())
    if (const auto head = store.read(name, false); head && head->notes.is_automatic)
      automatic.push_back(name);
  if (automatic.size() <= kKeptAutomatic) return {};
  automatic.resize(automatic.size() - kKeptAutomatic);
  for (const std::string& name : automatic) {
    if (std::find(needed.begin(), needed.end(), name) != needed.end()) continue;
    if (auto removed = store.remove(name); !removed) return removed;
  }
  return store.remove_unused_objects();
}

}  // namespace cohabit
