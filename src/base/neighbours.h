// stat(2) of many files, most of which stand beside the one before: of a path of ten directories
// nine need not be walked again.
#pragma once

#include <sys/stat.h>

#include <string>

namespace cohabit {

class Neighbours {
 public:
  Neighbours() = default;
  Neighbours(const Neighbours&) = delete;
  ~Neighbours();

  // As ::stat: 0, or -1 and errno.
  int stat(const std::string& path, struct stat& status);

 private:
  std::string directory_;  // of the last path
  int fd_ = -1;            // of it, since its second path
};

}  // namespace cohabit
