// Tree: the files that an examined process would see.
//
// With an empty root that is this machine; with --root DIR it is the file tree below DIR (a
// container image, a test world), where absolute symlinks and ".." must stay inside DIR as they
// would after chroot. All paths given and returned are as seen from inside. A relative path starts
// at the current directory; below a root that is the root itself, if no other one was told.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/neighbours.h"
#include "base/real_paths.h"
#include "base/result.h"

namespace cohabit {

// What the loader compares to know that two paths are one file.
struct FileId {
  uint64_t device = 0;
  uint64_t inode = 0;
  auto operator<=>(const FileId&) const = default;
};

struct FileStatus {
  FileId id;
  uint64_t size = 0;
  uint32_t mode = 0;  // st_mode
  bool is_directory() const { return (mode & 0170000) == 0040000; }
  bool is_regular() const { return (mode & 0170000) == 0100000; }
};

class Tree {
 public:
  explicit Tree(std::string root = "");

  const std::string& root() const { return root_; }
  // A sentence if the root is not a directory.
  Result<void> check_root() const;
  // Below a root: where relative paths start, because the files were captured with a process of
  // that machine (a bundle) and not only as files.
  void set_directory(std::string directory) { directory_ = std::move(directory); }
  // Whether there is a process that is examined with these files.
  bool has_process() const { return root_.empty() || !directory_.empty(); }
  std::string current_directory() const;
  // Everything that is asked from now on is noted; the log outlives the tree and its maps.
  void set_log(TouchLog* log) { log_ = log; }
  bool has_log() const { return log_ != nullptr; }
  // What is known of files that are mapped from now on; outlives the tree and its maps.
  void set_words(KnownWords* words) { words_ = words; }
  KnownWords* words() const { return words_; }
  // Follows symlinks. The error is errno (ENOENT, EACCES, ENOTDIR, ELOOP, ...).
  tl::expected<FileStatus, int> stat(const std::string& path) const;
  // The same of many files in turn.
  tl::expected<FileStatus, int> stat(const std::string& path, Neighbours& neighbours) const;
  // A file descriptor (O_RDONLY|O_CLOEXEC) or errno; the caller closes it. Only regular files are
  // opened: a directory gives EISDIR (what ld.so meets when it reads one), anything else ENXIO.
  tl::expected<int, int> open(const std::string& path) const;
  Result<MappedFile> map(const std::string& path) const;
  // The same of a file that open() opened as `path`; fd is not consumed.
  Result<MappedFile> map(int fd, const std::string& path) const;
  // A small text file, whole; nothing if it cannot be read or is larger than `limit` bytes.
  std::optional<std::string> read_text(const std::string& path, uint64_t limit = 16 << 20) const;
  // Absolute, without symlinks, "." and ".."; nothing if a part does not exist.
  std::optional<std::string> real_path(const std::string& path) const;
  // The same of many files in turn.
  std::optional<std::string> real_path(const std::string& path, RealPaths& known) const;
  // The text of a symlink; nothing if it is not one.
  std::optional<std::string> read_link(const std::string& path) const;
  // Names in a directory (without . and ..), sorted; empty if it cannot be read.
  std::vector<std::string> list(const std::string& path) const;
  // Where `path` is on this machine; nothing if a directory on the way does not exist. The last
  // component is followed too unless `follow_last` is false.
  std::optional<std::string> host_path(const std::string& path, bool follow_last = true) const;

 private:
  tl::expected<FileStatus, int> find_status(const std::string& path) const;
  tl::expected<int, int> find_and_open(const std::string& path) const;
  std::optional<std::string> resolve(const std::string& path) const;
  tl::expected<std::string, int> walk(const std::string& path, bool follow_last = true,
                                      bool must_exist = true) const;

  std::string root_;       // without a trailing slash; empty for this machine
  std::string directory_;  // of a bundle
  TouchLog* log_ = nullptr;
  KnownWords* words_ = nullptr;
};

}  // namespace cohabit
