// A tar archive in zstd, with sparse files and links, as GNU tar and libarchive read it.
//
// The headers are written here, because the archiver's library cannot be linked alone for writing:
// its formats bring libxml2, with it ICU, and so a libstdc++ into a command that runs inside broken
// environments. The format is POSIX's pax (ustar headers with records before them) with GNU tar's
// sparse format 1.0: a file's data begin with the text of its map.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cohabit {

class ArchiveWriter {
 public:
  explicit ArchiveWriter(uint64_t most_bytes);  // before they are compressed
  ~ArchiveWriter();
  ArchiveWriter(const ArchiveWriter&) = delete;

  void add_directory(const std::string& path);
  void add_symlink(const std::string& path, const std::string& target);
  void add_hard_link(const std::string& path, const std::string& target);
  void add_fifo(const std::string& path);
  void add_text(const std::string& path, std::string_view text);
  // A file of `size` bytes that has these parts, by offset, not overlapping, and else holes.
  struct Sparse {
    uint64_t size = 0;
    bool is_executable = false;
    std::map<uint64_t, std::string> parts;
  };
  void add_sparse(const std::string& path, const Sparse& file);
  // The archive; what went wrong on the way is said here.
  Result<std::string> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cohabit
