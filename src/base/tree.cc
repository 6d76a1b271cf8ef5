// Without a root every call is one system call: a simulation asks for thousands of paths. With a
// root the path is walked here, one component at a time, as the kernel walks it after chroot:
// openat2(RESOLVE_IN_ROOT) would do that too, but older kernels and container filters lack it.
#include "base/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/descriptor.h"
#include "base/not_in_bundle.h"
#include "base/touch_log.h"

namespace cohabit {
namespace {

constexpr int kMaxSymlinks = 40;  // the kernel's MAXSYMLINKS

struct DirectoryCloser {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

// A path with a NUL inside cannot name a file, and would be cut short by the system calls.
bool can_exist(const std::string& path) {
  return !path.empty() && path.find('\0') == std::string::npos;
}

std::optional<std::string> link_text(const char* host_path) {
  char buffer[PATH_MAX];
  const ssize_t length = ::readlink(host_path, buffer, sizeof buffer);
  if (length < 0) return std::nullopt;
  return std::string(buffer, static_cast<size_t>(length));
}

FileStatus to_status(const struct stat& status) {
  return {{status.st_dev, status.st_ino}, static_cast<uint64_t>(status.st_size), status.st_mode};
}

// 0, or the errno of entering this directory (ENOTDIR, EACCES, ENOENT).
int enter_error(const std::string& directory) {
  struct stat status{};
  return ::stat((directory + "/.").c_str(), &status) == 0 ? 0 : errno;
}

// The walk below a root. `at_` is always a symlink-free path inside it, "" being the root itself.
class Walk {
 public:
  Walk(const std::string& root, const std::string& path, bool follow_last, bool must_exist)
      : root_(root), follow_last_(follow_last), must_exist_(must_exist), rest_(path) {}

  // The path inside the root, or errno.
  tl::expected<std::string, int> run() {
    while (true) {
      const size_t begin = rest_.find_first_not_of('/');
      if (begin == std::string::npos) break;
      const size_t end = std::min(rest_.find('/', begin), rest_.size());
      const std::string name = rest_.substr(begin, end - begin);
      rest_.erase(0, end);
      if (const int error = step(name)) return tl::unexpected(error);
    }
    // "file/" is not the file.
    if (!rest_.empty() && !at_.empty()) {
      if (const int error = enter_error(root_ + at_)) return tl::unexpected(error);
    }
    return at_.empty() ? "/" : at_;
  }
  // After an error: the first part that is not there, if that is why.
  const std::string& missing() const { return missing_; }

 private:
  int step(const std::string& name) {
    if (name == "." || name == "..") {
      if (const int error = enter_error(root_ + at_)) return error;
      if (name == "..") at_.erase(at_.empty() ? 0 : at_.rfind('/'));
      return 0;
    }
    const std::string next = at_ + "/" + name;
    const bool last = rest_.empty();
    const std::optional<std::string> target = link_text((root_ + next).c_str());
    if (target && (!last || follow_last_)) return follow(*target);
    const int error = target ? 0 : errno;
    if (!target && error != EINVAL) {  // EINVAL: exists and is no symlink
      const bool may_be_missing = last && !must_exist_ && error == ENOENT;
      if (!may_be_missing && error == ENOENT) missing_ = next;
      if (!may_be_missing) return error;
    }
    at_ = next;
    return 0;
  }

  int follow(const std::string& target) {
    if (++symlinks_ > kMaxSymlinks) return ELOOP;
    if (target.empty()) return ENOENT;
    if (target.front() == '/') at_.clear();
    rest_ = target + rest_;
    return rest_.size() > size_t{kMaxSymlinks} * PATH_MAX ? ENAMETOOLONG : 0;
  }

  const std::string& root_;
  const bool follow_last_;
  const bool must_exist_;
  std::string rest_;
  std::string at_, missing_;
  int symlinks_ = 0;
};

std::string from_here(const std::string& path, const std::string& directory) {
  return path.starts_with('/') ? path : directory + "/" + path;
}

// Of a bundle.
bool knows_no_file(const std::string& root, const std::string& path, const TouchLog& log) {
  Walk walk(root, path, true, true);
  return walk.run() || walk.missing().empty() || knows_absence(log, walk.missing());
}

tl::expected<FileStatus, int> stat_host(const char* path) {
  struct stat status{};
  if (::stat(path, &status) != 0) return tl::unexpected(errno);
  return to_status(status);
}

tl::expected<int, int> open_host(const char* path) {
  // Asked before opening: opening a device can have effects, and a FIFO would wait for a writer.
  const tl::expected<FileStatus, int> status = stat_host(path);
  if (!status) return tl::unexpected(status.error());
  if (status->is_directory()) return tl::unexpected(EISDIR);
  if (!status->is_regular()) return tl::unexpected(ENXIO);
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return tl::unexpected(errno);
  struct stat opened{};  // it may have been replaced in between
  if (::fstat(fd, &opened) == 0 && S_ISREG(opened.st_mode)) return fd;
  ::close(fd);
  return tl::unexpected(ENXIO);
}

// Of the first `size` bytes: whether some are not there.
bool has_hole(int fd, uint64_t size) {
  const off_t hole = ::lseek(fd, 0, SEEK_HOLE);
  return hole >= 0 && static_cast<uint64_t>(hole) < size;
}

constexpr size_t kReadAtOnce = 1 << 16;

std::optional<std::string> read_descriptor(int fd, uint64_t limit) {
  std::string text;
  char buffer[kReadAtOnce];
  // One allocation instead of one for each doubling. A hint: the file may grow, or say nothing.
  if (struct stat status{}; ::fstat(fd, &status) == 0 && status.st_size > 0)
    text.reserve(std::min(static_cast<uint64_t>(status.st_size), limit));
  while (true) {
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) return text;
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > limit) return std::nullopt;
  }
}

}  // namespace

Tree::Tree(std::string root) : root_(std::move(root)) {
  if (root_.empty()) return;
  // Resolved once, so that a later change of directory cannot move it.
  if (char* resolved = ::realpath(root_.c_str(), nullptr)) {
    root_ = resolved;
    std::free(resolved);
  }
  while (!root_.empty() && root_.back() == '/') root_.pop_back();
}

Result<void> Tree::check_root() const {
  const auto status = stat("/");
  if (status && status->is_directory()) return {};
  return fail("expected a directory to read files below, but " + root_ +
              (status ? " is none" : ": " + std::string(std::strerror(status.error()))));
}

tl::expected<std::string, int> Tree::walk(const std::string& path, bool follow_last,
                                          bool must_exist) const {
  if (!can_exist(path)) return tl::unexpected(ENOENT);
  if (path.size() >= PATH_MAX) return tl::unexpected(ENAMETOOLONG);
  if (path.front() == '/' || directory_.empty())
    return Walk(root_, path, follow_last, must_exist).run();
  return Walk(root_, directory_ + "/" + path, follow_last, must_exist).run();
}

std::string Tree::current_directory() const {
  if (!root_.empty()) return directory_.empty() ? "/" : directory_;
  std::error_code ignored;
  return std::filesystem::current_path(ignored).string();
}

bool lacks_content(const Tree& tree, const std::string& path) {
  const auto fd = is_of_bundle(tree) ? tree.open(path) : tl::unexpected(ENOENT);
  if (!fd) return false;
  const Descriptor descriptor(*fd);
  struct stat status{};
  return ::fstat(*fd, &status) == 0 && has_hole(*fd, static_cast<uint64_t>(status.st_size));
}

tl::expected<FileStatus, int> Tree::stat(const std::string& path) const {
  auto status = find_status(path);
  if (log_) log_->asked(path, status.has_value());
  if (!status && is_of_bundle(*this) && status.error() == ENOENT && can_exist(path) &&
      !knows_no_file(root_, from_here(path, directory_), *log_))
    return tl::unexpected(kNotInBundle);
  return status;
}

tl::expected<FileStatus, int> Tree::stat(const std::string& path, Neighbours& neighbours) const {
  if (!root_.empty() || log_ || !can_exist(path)) return stat(path);
  struct stat status{};
  if (neighbours.stat(path, status) != 0) return tl::unexpected(errno);
  return to_status(status);
}

tl::expected<FileStatus, int> Tree::find_status(const std::string& path) const {
  if (root_.empty()) {
    if (!can_exist(path)) return tl::unexpected(ENOENT);
    return stat_host(path.c_str());
  }
  const tl::expected<std::string, int> inside = walk(path);
  if (!inside) return tl::unexpected(inside.error());
  return stat_host((root_ + *inside).c_str());
}

tl::expected<int, int> Tree::open(const std::string& path) const {
  const auto fd = find_and_open(path);
  if (log_) log_->asked(path, fd.has_value());
  if (!fd && is_of_bundle(*this) && fd.error() == ENOENT && can_exist(path) &&
      !knows_no_file(root_, from_here(path, directory_), *log_))
    return tl::unexpected(kNotInBundle);
  return fd;
}

tl::expected<int, int> Tree::find_and_open(const std::string& path) const {
  if (root_.empty()) {
    if (!can_exist(path)) return tl::unexpected(ENOENT);
    return open_host(path.c_str());
  }
  const tl::expected<std::string, int> inside = walk(path);
  if (!inside) return tl::unexpected(inside.error());
  return open_host((root_ + *inside).c_str());
}

Result<MappedFile> Tree::map(const std::string& path) const {
  const tl::expected<int, int> fd = open(path);
  if (!fd) return fail("cannot open " + path + ": " + std::strerror(fd.error()));
  const Descriptor descriptor(*fd);
  return map(*fd, path);
}

Result<MappedFile> Tree::map(int fd, const std::string& path) const {
  return MappedFile::map(fd, path, log_ && log_->wants_pages() ? log_ : nullptr, words_);
}

std::optional<std::string> Tree::read_text(const std::string& path, uint64_t limit) const {
  const tl::expected<int, int> fd = open(path);
  if (!fd) return std::nullopt;
  const Descriptor descriptor(*fd);
  auto text = read_descriptor(*fd, limit);
  const uint64_t count = text ? text->size() : limit + kReadAtOnce;
  if (log_) log_->read(path, *fd, count);
  if (is_of_bundle(*this) && has_hole(*fd, count)) return std::nullopt;
  return text;
}

std::optional<std::string> Tree::real_path(const std::string& path) const {
  auto real = resolve(path);
  if (log_) log_->resolved(path, real.has_value());
  return real;
}

std::optional<std::string> Tree::real_path(const std::string& path, RealPaths& known) const {
  if (!root_.empty() || !can_exist(path)) return real_path(path);
  auto real = known.of(path);
  if (log_) log_->resolved(path, real.has_value());
  return real;
}

std::optional<std::string> Tree::resolve(const std::string& path) const {
  if (!can_exist(path)) return std::nullopt;
  if (root_.empty()) {
    char* resolved = ::realpath(path.c_str(), nullptr);
    if (!resolved) return std::nullopt;
    std::string result = resolved;
    std::free(resolved);
    return result;
  }
  const tl::expected<std::string, int> inside = walk(path);
  if (!inside) return std::nullopt;
  return *inside;
}

std::optional<std::string> Tree::read_link(const std::string& path) const {
  const std::optional<std::string> host = host_path(path, false);
  struct stat status{};
  if (log_) log_->resolved(path, host && ::lstat(host->c_str(), &status) == 0);
  if (!host) return std::nullopt;
  return link_text(host->c_str());
}

std::vector<std::string> Tree::list(const std::string& path) const {
  std::vector<std::string> names;
  const std::optional<std::string> host = host_path(path);
  const std::unique_ptr<DIR, DirectoryCloser> directory(host ? ::opendir(host->c_str()) : nullptr);
  if (log_) log_->listed(path, directory != nullptr);
  if (!directory) return names;
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::string> Tree::host_path(const std::string& path, bool follow_last) const {
  if (!can_exist(path)) return std::nullopt;
  if (root_.empty()) {
    const size_t slash = path.find_last_of('/');
    if (slash != std::string::npos && enter_error(path.substr(0, slash + 1)) != 0)
      return std::nullopt;
    return path;
  }
  const tl::expected<std::string, int> inside = walk(path, follow_last, false);
  if (!inside) return std::nullopt;
  return root_ + *inside;
}

}  // namespace cohabit
