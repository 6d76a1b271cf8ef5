#include "facts/files/walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>

namespace cohabit {
namespace {

constexpr size_t kMaxEntries = 20'000'000;

int64_t nanoseconds(const struct timespec& time) {
  constexpr int64_t kSecond = 1'000'000'000;
  return time.tv_sec * kSecond + time.tv_nsec;
}

EntryKind kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return EntryKind::kDirectory;
  if (S_ISREG(mode)) return EntryKind::kFile;
  return S_ISLNK(mode) ? EntryKind::kLink : EntryKind::kOther;
}

// False: gone in between.
bool fill(int directory, const char* name, Entry& entry) {
  struct stat status{};
  if (::fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
  entry.kind = kind_of(status.st_mode);
  entry.mode = status.st_mode & 07777;
  entry.uid = status.st_uid;
  entry.gid = status.st_gid;
  entry.size = entry.kind == EntryKind::kFile ? static_cast<uint64_t>(status.st_size) : 0;
  entry.modified = nanoseconds(status.st_mtim);
  entry.changed = nanoseconds(status.st_ctim);
  entry.inode = status.st_ino;
  entry.device = status.st_dev;
  entry.links = status.st_nlink;
  if (entry.kind != EntryKind::kLink) return true;
  char text[PATH_MAX];
  const ssize_t length = ::readlinkat(directory, name, text, sizeof text);
  if (length < 0) return false;
  entry.target.assign(text, static_cast<size_t>(length));
  return true;
}

bool contains(const std::vector<std::string_view>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Result<std::vector<Entry>> walk_files(const std::string& directory,
                                      const std::vector<std::string_view>& skipped) {
  std::vector<Entry> entries;
  std::vector<std::string> waiting = {""};  // directories, as below `directory`
  while (!waiting.empty()) {
    const std::string below = std::move(waiting.back());
    waiting.pop_back();
    const std::string place = below.empty() ? directory : fmt::format("{}/{}", directory, below);
    const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(place.c_str()), ::closedir);
    if (!open && errno == ENOENT && !below.empty()) continue;
    if (!open) return fail(fmt::format("cannot read {}: {}", place, std::strerror(errno)));
    while (const dirent* found = ::readdir(open.get())) {
      const std::string_view name = found->d_name;
      if (name == "." || name == ".." || (below.empty() && contains(skipped, name))) continue;
      Entry entry;
      if (!fill(::dirfd(open.get()), found->d_name, entry)) continue;
      entry.path = below.empty() ? std::string(name) : fmt::format("{}/{}", below, name);
      if (entry.kind == EntryKind::kDirectory) waiting.push_back(entry.path);
      entries.push_back(std::move(entry));
      if (entries.size() > kMaxEntries)
        return fail(fmt::format("{} has more than {} files", directory, kMaxEntries));
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.path < b.path; });
  return entries;
}

bool look_at(const std::string& path, Entry& entry) {
  return fill(AT_FDCWD, path.c_str(), entry);
}

}  // namespace cohabit
