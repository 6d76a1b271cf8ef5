#include "base/neighbours.h"

#include <fcntl.h>
#include <unistd.h>

#include <string_view>

namespace cohabit {

Neighbours::~Neighbours() {
  if (fd_ >= 0) ::close(fd_);
}

int Neighbours::stat(const std::string& path, struct stat& status) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0) return ::stat(path.c_str(), &status);
  const std::string_view directory(path.data(), slash);
  const char* name = path.c_str() + slash + 1;
  const bool is_same = directory == directory_;
  if (!is_same) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
    directory_ = directory;
  } else if (fd_ < 0) {
    fd_ = ::open(directory_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  }
  // Nothing after the slash is the directory itself.
  if (fd_ < 0 || *name == '\0') return ::stat(path.c_str(), &status);
  return ::fstatat(fd_, name, &status, 0);
}

}  // namespace cohabit
