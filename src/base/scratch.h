// Files of ours that must not stay behind.
#pragma once

#include <string>

namespace cohabit {

// Removes a file or a directory with all that is in it; links are not followed. Makes system calls
// only, so that a signal handler may use it.
void remove_tree(const char* path);

// An empty directory in $TMPDIR, or /tmp, that goes when it does, or when SIGINT, SIGTERM, SIGHUP,
// SIGPIPE or the like end the process (as ever, unless it ignores or handles them). Without links
// in its path. What a process that was killed has left of the same name in the same place goes with
// the next one, once nothing works in it any more (working_in.h): while it is used a directory is
// locked (flock). What works in it when such a signal comes is killed.
class ScratchDirectory {
 public:
  explicit ScratchDirectory(const std::string& name);
  // The same in another directory.
  ScratchDirectory(const std::string& name, const std::string& parent);
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  const std::string& path() const { return path_; }  // empty: it could not be made
  // Processes that work in it, by their group: such a signal ends them first. 0: none any more.
  void belongs_to(int group) const;

 private:
  void make(const std::string& name, const std::string& parent);
  void remember();

  std::string path_;
  int lock_ = -1;
  int slot_ = -1;
};

}  // namespace cohabit
