// All that lies below a directory, by lstat: what a snapshot is made of. Nothing is opened but
// directories, no link is followed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cohabit {

enum class EntryKind : uint8_t { kDirectory, kFile, kLink, kOther };

struct Entry {
  std::string path;  // below the directory, without a slash in front; any bytes but NUL
  EntryKind kind = EntryKind::kOther;
  uint32_t mode = 0, uid = 0, gid = 0;  // mode: the twelve bits of chmod
  uint64_t size = 0;
  int64_t modified = 0, changed = 0;  // mtime and ctime in nanoseconds
  uint64_t inode = 0, device = 0, links = 0;
  std::string target;  // of a symlink
};

// In the order of their paths' bytes. `skipped`: names in the directory itself that are left out.
// Fails at a directory that cannot be read: a list with a hole looks like things that are gone.
Result<std::vector<Entry>> walk_files(const std::string& directory,
                                      const std::vector<std::string_view>& skipped);

// One of them, as it is now; nothing if it is gone.
bool look_at(const std::string& path, Entry& entry);

}  // namespace cohabit
