#include "base/read_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace cohabit {

Result<std::string> read_file(const std::string& path, size_t limit) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail("cannot read " + path + ": " + std::strerror(errno));
  std::string text;
  char buffer[1 << 16];
  ssize_t count = 0;
  while ((count = ::read(fd, buffer, sizeof buffer)) != 0) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > limit) break;
  }
  const int error = errno;
  ::close(fd);
  if (count < 0) return fail("cannot read " + path + ": " + std::strerror(error));
  if (text.size() > limit) return fail(path + " is too large");
  return text;
}

}  // namespace cohabit
