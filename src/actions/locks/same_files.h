// Whether two environments are the same, file by file, by sha256; and of what differs, why it must:
// an environment's place stands in its scripts, installers leave notes, compiled files come and go.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "facts/snapshots/snapshot.h"

namespace cohabit::locks {

// What an installer writes beside a wheel's own metadata; and its list of files.
bool is_note(std::string_view path);
bool is_record(std::string_view path);
// What Python or an installer compiles anew, though a wheel may carry it (NumPy 1.26 does).
bool is_compiled(std::string_view path);

// One of them.
struct Side {
  std::string prefix;               // the place that its files name
  std::string lies_in;              // where it is now
  std::vector<SnapshotFile> files;  // in the order of their paths; with hashes
  std::function<std::optional<std::string>(const SnapshotFile&)> text;  // of small files
};

// Everything below it, each file read.
Result<Side> read_side(const std::string& prefix);

struct Unlike {
  std::string path;
  std::string why;
};

struct Sameness {
  size_t equal = 0;               // files and links
  size_t compiled = 0;            // __pycache__: not compared
  std::vector<Unlike> explained;  // differ, and must
  std::vector<Unlike> differing;  // differ
};

Sameness compare_sides(const Side& wanted, const Side& made);

// Whether every file that a RECORD of this environment claims has the claimed bytes; `explained`
// stays empty.
Sameness compare_with_records(const Side& made, const std::vector<std::string>& sites);

}  // namespace cohabit::locks
