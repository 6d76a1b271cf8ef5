// A snapshot: what an environment was at one moment, as data, and as the text that is kept of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "facts/files/walk.h"

namespace cohabit {

// One name in the environment. Directories, links and what is neither have no hash and no object.
struct SnapshotFile {
  std::string path;  // below the environment
  EntryKind kind = EntryKind::kOther;
  uint32_t mode = 0, uid = 0, gid = 0;
  uint64_t size = 0;
  int64_t modified = 0;
  std::string target;  // of a link
  Sha256 hash{};
  bool was_read = false;  // the hash is of the bytes; else an installer's claim that was believed
  std::string object;     // what holds the bytes (store.h)
};

SnapshotFile to_row(const Entry& entry);

struct SnapshotPackage {
  std::string name, version;
  auto operator<=>(const SnapshotPackage&) const = default;
};

struct SnapshotVariable {
  std::string name, hash;  // the hash is salted: values may be secrets
  auto operator<=>(const SnapshotVariable&) const = default;
};

struct SnapshotFinding {
  std::string fingerprint, severity, code, headline;
};

// What the caller knows of the environment besides its files.
struct SnapshotNotes {
  std::string reason;  // "before `pip install x`"; empty: the user asked for it
  bool is_automatic = false;
  std::string findings_of;  // "files", "orders"; empty: nobody looked
  std::vector<SnapshotPackage> packages;
  std::vector<SnapshotVariable> variables;
  std::vector<SnapshotFinding> findings;
};

struct Snapshot {
  std::string name;
  std::string made;    // 2026-01-31T12:00:00Z
  std::string prefix;  // where the environment was
  SnapshotNotes notes;
  std::vector<SnapshotFile> files;  // in the order of their paths' bytes
};

// Lines of fields; the last one has the hash of all others, so that a damaged file is known as one.
std::string format_snapshot(const Snapshot& snapshot);
// `with_files` false: the head only, of a text whose hash is right.
Result<Snapshot> parse_snapshot(std::string_view text, bool with_files = true);

// Tabs, line breaks and "%" as %09, %0a, %25.
std::string escape_field(std::string_view text);
std::string unescape_field(std::string_view text);

// An inode in hexadecimal, with "-N" behind it where that name was taken.
bool is_object_name(std::string_view name);
// Letters, digits, ".", "_" and "-"; the first is a letter or digit. Says what is wrong.
Result<void> check_snapshot_name(const std::string& name);

}  // namespace cohabit
