#include "base/write_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/file_size_limit.h"
#include "base/paths.h"

namespace cohabit {
namespace {

tl::unexpected<Error> cannot(const std::string& path) {
  return fail(fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

bool write_all(std::FILE* file, std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fflush(file) == 0 && written;
}

Result<void> write_through(const std::string& path, std::string_view text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file) return cannot(path);
  const bool written = write_all(file, text);
  const bool closed = std::fclose(file) == 0;
  if (!written || !closed) return cannot(path);
  return {};
}

std::string directory_to_write(const std::string& path) {
  const std::string directory = directory_of(path);
  return directory.empty() ? "." : directory;
}

bool can_replace(const std::string& target) {
  return access(directory_to_write(target).c_str(), W_OK) == 0;
}

// Where a link points to, so that it is the file that is replaced and not the link.
std::string target_of(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), std::free);
  return real ? real.get() : path;
}

}  // namespace

Result<void> check_can_write(const std::string& path) {
  if (path == "-") return {};
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) {
    if (path.empty()) return cannot("a file without a name");
    if (access(directory_to_write(path).c_str(), W_OK | X_OK) != 0) return cannot(path);
    return {};
  }
  if (S_ISDIR(status.st_mode)) {
    errno = EISDIR;
    return cannot(path);
  }
  if (!can_replace(target_of(path)) && access(path.c_str(), W_OK) != 0) return cannot(path);
  return {};
}

Result<void> write_file(const std::string& path, std::string_view text) {
  const BearsFileSizeLimit bears;
  if (path == "-") {
    if (!write_all(stdout, text)) return cannot("the standard output");
    return {};
  }
  struct stat status{};
  const bool exists = stat(path.c_str(), &status) == 0;
  // One that others hold by another name, or that is not ours to replace, keeps its identity.
  if (exists && (!S_ISREG(status.st_mode) || status.st_nlink > 1 || status.st_uid != geteuid()))
    return write_through(path, text);
  const std::string target = exists ? target_of(path) : path;
  if (exists && !can_replace(target)) return write_through(path, text);
  const std::string partial = fmt::format("{}.{}.partial", target, getpid());
  auto done = write_through(partial, text);
  if (done && exists) chmod(partial.c_str(), status.st_mode & 07777);
  if (done && std::rename(partial.c_str(), target.c_str()) != 0) done = cannot(path);
  if (!done) {
    const int error = errno;
    unlink(partial.c_str());
    errno = error;
    return cannot(path);
  }
  return {};
}

}  // namespace cohabit
