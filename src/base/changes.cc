#include "base/changes.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/descriptor.h"

namespace cohabit::disk {
namespace {

constexpr int64_t kNanoseconds = 1'000'000'000;

// The tests' way to end us anywhere.
class Counter {
 public:
  Counter() {
    if (const char* text = std::getenv("COHABIT_TEST_KILL_AT"))
      std::from_chars(text, text + std::strlen(text), kill_at_);
    if (const char* path = std::getenv("COHABIT_TEST_COUNT")) path_ = path;
  }
  Counter(const Counter&) = delete;
  ~Counter() {
    if (path_.empty()) return;
    if (std::FILE* file = std::fopen(path_.c_str(), "w")) {
      fmt::print(file, "{}\n", count_);
      std::fclose(file);
    }
  }
  void step() {
    count_++;
    if (count_ == kill_at_) ::raise(SIGKILL);
  }

 private:
  uint64_t count_ = 0, kill_at_ = 0;
  std::string path_;
};

void step() {
  static Counter counter;
  counter.step();
}

tl::unexpected<Failure> failure(std::string_view what) {
  const int number = errno;
  return tl::unexpected(Failure{number, fmt::format("cannot {}: {}", what, std::strerror(number))});
}

// Ends with an error of the file's bytes being lost: the name goes, errno stays.
tl::unexpected<Failure> give_up(const std::string& path) {
  auto result = failure("write " + path);
  ::unlink(path.c_str());
  return result;
}

bool set_attributes(int descriptor, const Attributes& attributes) {
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return false;
  const bool owned = status.st_uid == attributes.uid && status.st_gid == attributes.gid;
  // Who is not root cannot give files away; such a copy is ours.
  if (!owned && ::fchown(descriptor, attributes.uid, attributes.gid) != 0 && ::geteuid() == 0)
    return false;
  struct timespec times[2] = {{0, UTIME_NOW}, {0, 0}};
  times[1].tv_sec = attributes.modified / kNanoseconds;
  times[1].tv_nsec = attributes.modified % kNanoseconds;
  if (times[1].tv_nsec < 0) {
    times[1].tv_sec--;
    times[1].tv_nsec += kNanoseconds;
  }
  return ::fchmod(descriptor, attributes.mode & 07777) == 0 && ::futimens(descriptor, times) == 0;
}

bool copy_bytes(int from, int to) {
  constexpr size_t kBuffer = 1 << 18;
  std::vector<char> buffer(kBuffer);
  for (bool first = true;; first = false) {
    const ssize_t count = ::read(from, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count == 0;
    if (!write_all(to, {buffer.data(), static_cast<size_t>(count)})) return false;
    if (first) step();
  }
}

Outcome<> copy_with(const std::string& from, const std::string& to, const Attributes& attributes,
                    bool bytes_too) {
  step();
  const Descriptor source(::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (source.get() < 0) return failure("read " + from);
  Descriptor target(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (target.get() < 0) return failure("write " + to);
  const bool cloned = ::ioctl(target.get(), FICLONE, source.get()) == 0;
  if (!cloned && (!bytes_too || !copy_bytes(source.get(), target.get()))) return give_up(to);
  if (!set_attributes(target.get(), attributes)) return give_up(to);
  if (!target.close()) return give_up(to);
  return {};
}

Outcome<> done(int result, std::string_view what) {
  if (result != 0) return failure(what);
  return {};
}

}  // namespace

Outcome<> link(const std::string& from, const std::string& to) {
  step();
  return done(::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), 0), "link " + from);
}

Outcome<> rename(const std::string& from, const std::string& to) {
  step();
  return done(::rename(from.c_str(), to.c_str()), "put a file at " + to);
}

Outcome<> unlink(const std::string& path) {
  step();
  return done(::unlink(path.c_str()), "remove " + path);
}

Outcome<> make_directory(const std::string& path, uint32_t mode) {
  step();
  return done(::mkdir(path.c_str(), mode), "make the directory " + path);
}

Outcome<> remove_directory(const std::string& path) {
  step();
  return done(::rmdir(path.c_str()), "remove the directory " + path);
}

Outcome<> make_symlink(const std::string& target, const std::string& path) {
  step();
  return done(::symlink(target.c_str(), path.c_str()), "make the link " + path);
}

Outcome<> change_mode(const std::string& path, uint32_t mode) {
  step();
  return done(::chmod(path.c_str(), mode & 07777), "change the permissions of " + path);
}

Outcome<> change_owner(const std::string& path, uint32_t uid, uint32_t gid) {
  step();
  return done(::lchown(path.c_str(), uid, gid), "change the owner of " + path);
}

Outcome<> write_new(const std::string& path, std::string_view text) {
  step();
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.get() < 0) return failure("write " + path);
  if (!write_all(file.get(), text.substr(0, text.size() / 2))) return give_up(path);
  step();
  if (!write_all(file.get(), text.substr(text.size() / 2)) || ::fsync(file.get()) != 0 ||
      !file.close())
    return give_up(path);
  return {};
}

Outcome<> replace(const std::string& path, std::string_view text) {
  const std::string partial = path + ".partial";
  ::unlink(partial.c_str());
  if (auto written = write_new(partial, text); !written) return written;
  return rename(partial, path);
}

Outcome<> copy(const std::string& from, const std::string& to, const Attributes& attributes) {
  return copy_with(from, to, attributes, true);
}

Outcome<> clone(const std::string& from, const std::string& to, const Attributes& attributes) {
  return copy_with(from, to, attributes, false);
}

Outcome<> flush(const std::string& directory) {
  const Descriptor file(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return done(file.get() < 0 ? -1 : ::syncfs(file.get()), "write " + directory + " to the disk");
}

Outcome<> remove_all(const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) return {};
  if (!S_ISDIR(status.st_mode)) return unlink(path);
  std::vector<std::string> names;
  {
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
    if (!directory) return failure("read " + path);
    while (const dirent* entry = ::readdir(directory.get()))
      if (const std::string_view name = entry->d_name; name != "." && name != "..")
        names.emplace_back(name);
  }
  for (const std::string& name : names)
    if (auto removed = remove_all(fmt::format("{}/{}", path, name)); !removed) return removed;
  return remove_directory(path);
}

void take_limits_as_failures() {
  ::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace cohabit::disk
