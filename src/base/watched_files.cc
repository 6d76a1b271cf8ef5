#include "base/watched_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <ctime>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/read_file.h"
#include "base/sha256.h"
#include "base/together.h"

namespace cohabit {
namespace {

constexpr size_t kMostSaid = 1 << 20;  // of a file in /proc

// Their times and sizes tell nothing.
bool is_of_the_kernel(const std::string& path) {
  return path.starts_with("/proc/") || path.starts_with("/sys/");
}

std::string links_of(const std::string& path, RealPaths& real_paths) {
  std::string link;
  return real_paths.of(path, &link).value_or("") + '\0' + link;
}

// Whether a path led elsewhere before a time: a link on its way is newer than that, or a directory
// was moved since. Of a directory that was moved only the inode's time is new; a name that came to
// it, or went, gives it both.
class Ways {
 public:
  explicit Ways(int64_t since) : since_(since) {}

  bool has_changed(const std::string& path) { return has_changed(path, kMostLinks); }

 private:
  static constexpr int kMostLinks = 40;  // as the kernel follows

  bool has_changed(const std::string& path, int links) {
    if (path.size() >= PATH_MAX || is_of_the_kernel(path)) return false;
    struct stat status{};
    if (path.empty() || ::lstat(path.c_str(), &status) != 0) return is_above_changed(path, links);
    const bool is_new = nanoseconds(status.st_ctim) >= since_;
    const bool is_elsewhere = S_ISLNK(status.st_mode) ? is_new || leads_elsewhere(path, links)
                                                      : S_ISDIR(status.st_mode) && is_new &&
                                                            nanoseconds(status.st_mtim) < since_;
    return is_elsewhere || is_above_changed(path, links);
  }

  bool is_above_changed(const std::string& path, int links) {
    const size_t slash = path.rfind('/');
    if (slash == path.npos || slash == 0) return false;
    const std::string above = path.substr(0, slash);
    const auto [known, is_unknown] = known_.try_emplace(above, false);
    if (!is_unknown) return known->second;
    const bool changed = has_changed(above, links);
    known_[above] = changed;
    return changed;
  }

  bool leads_elsewhere(const std::string& link, int links) {
    char text[PATH_MAX];
    const ssize_t length = ::readlink(link.c_str(), text, sizeof text);
    if (length <= 0 || links == 0) return false;
    const std::string_view target(text, static_cast<size_t>(length));
    std::string directory = link.substr(0, link.rfind('/') + 1);
    return has_changed(target[0] == '/' ? std::string(target) : directory.append(target),
                       links - 1);
  }

  const int64_t since_;
  std::unordered_map<std::string, bool> known_;  // by directory
};

}  // namespace

int64_t WatchedFiles::now() {
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME, &time);
  return nanoseconds(time);
}

WatchedFiles::State WatchedFiles::look(const std::string& path, uint8_t asked, Looking& looking) {
  State state;
  state.asked = asked;
  if (path.empty() || path.find('\0') != std::string::npos) {
    state.error = ENOENT;  // no file has such a name
    return state;
  }
  if ((asked & kLinks) != 0) state.more = links_of(path, looking.real_paths);
  struct stat status{};
  if (looking.neighbours.stat(path, status) != 0) {
    state.error = errno;
    return state;
  }
  state.mode = status.st_mode;
  if (is_of_the_kernel(path)) {
    const auto text = (asked & kContent) != 0 ? read_file(path, kMostSaid) : Result<std::string>();
    if (text) state.more += hexadecimal(sha256(Bytes(std::string_view(*text))));
    return state;
  }
  state.device = status.st_dev;
  state.inode = status.st_ino;
  if (!S_ISREG(status.st_mode) && (asked & kNames) == 0) return state;
  state.size = static_cast<uint64_t>(status.st_size);
  state.modified = nanoseconds(status.st_mtim);
  state.changed = nanoseconds(status.st_ctim);
  return state;
}

bool WatchedFiles::is_same(const State& before, const State& now) {
  return before.error == now.error && before.device == now.device && before.inode == now.inode &&
         before.size == now.size && before.mode == now.mode && before.modified == now.modified &&
         before.changed == now.changed && before.more == now.more;
}

std::optional<WatchedFiles> WatchedFiles::of(const TouchLog& log, int64_t start) {
  WatchedFiles result;
  Looking looking;
  Ways ways(start - kTick);
  for (const auto& [path, touched] : log.paths_so_far()) {
    const unsigned asked = (touched.listed ? kNames : 0u) |
                           (touched.ranges.empty() ? 0u : kContent) |
                           (touched.resolved ? kLinks : 0u);
    State state = look(path, static_cast<uint8_t>(asked), looking);
    if (state.changed >= start - kTick || ways.has_changed(path)) return std::nullopt;
    // A directory cannot be opened as a file, a file has no names, a link may lead nowhere, and
    // what is there may be somebody else's.
    const bool may_differ = S_ISDIR(state.mode) || touched.resolved ||
                            (touched.listed && !touched.is_there) ||
                            (state.error == 0 && ::access(path.c_str(), R_OK) != 0);
    if ((state.error == 0) != touched.is_there && !may_differ) return std::nullopt;
    result.files_.emplace_hint(result.files_.end(), path, std::move(state));
  }
  return result;
}

bool WatchedFiles::is_unchanged() const {
  constexpr size_t kPart = 1024;
  std::vector<const Entry*> entries;
  entries.reserve(files_.size());
  for (const Entry& entry : files_) entries.push_back(&entry);
  std::atomic<bool> same = true;
  together((entries.size() + kPart - 1) / kPart, [&](size_t part) {
    const size_t end = std::min(entries.size(), (part + 1) * kPart);
    Looking looking;
    for (size_t i = part * kPart; i < end && same; i++) {
      const auto& [path, state] = *entries[i];
      if (!is_same(state, look(path, state.asked, looking))) same = false;
    }
  });
  return same;
}

// What both have been asked is looked at once more, for all that either was asked.
bool WatchedFiles::add(const WatchedFiles& others) {
  Looking looking;
  for (const auto& [path, state] : others.files_) {
    const auto [known, fresh] = files_.try_emplace(path, state);
    if (fresh || known->second.asked == state.asked) {
      if (!is_same(known->second, state)) return false;
      continue;
    }
    const uint8_t asked = known->second.asked | state.asked;
    if (!is_same(state, look(path, state.asked, looking)) ||
        !is_same(known->second, look(path, known->second.asked, looking)))
      return false;
    known->second = look(path, asked, looking);
  }
  return true;
}

// Neighbours have the beginning of their paths in common.
void WatchedFiles::pack(Packer& packer) const {
  packer.number(files_.size());
  std::string_view before;
  for (const auto& [path, state] : files_) {
    const auto differs = std::mismatch(path.begin(), path.end(), before.begin(), before.end());
    const auto common = static_cast<size_t>(differs.first - path.begin());
    packer.number(common);
    packer.text(std::string_view(path).substr(common));
    packer.number(state.asked);
    packer.number(static_cast<uint64_t>(state.error));
    for (const uint64_t number : {state.device, state.inode, state.size, state.mode})
      packer.number(number);
    packer.number(static_cast<uint64_t>(state.modified));
    packer.number(static_cast<uint64_t>(state.changed));
    packer.text(state.more);
    before = path;
  }
}

WatchedFiles WatchedFiles::unpack(Unpacker& unpacker) {
  WatchedFiles result;
  std::string path;
  for (size_t left = unpacker.count(); left > 0 && !unpacker.failed(); left--) {
    path.resize(std::min<uint64_t>(unpacker.number(), path.size()));
    path += unpacker.text();
    State state;
    state.asked = static_cast<uint8_t>(unpacker.number());
    state.error = static_cast<int>(unpacker.number());
    for (uint64_t* number : {&state.device, &state.inode, &state.size, &state.mode})
      *number = unpacker.number();
    state.modified = static_cast<int64_t>(unpacker.number());
    state.changed = static_cast<int64_t>(unpacker.number());
    state.more = unpacker.text();
    result.files_.emplace_hint(result.files_.end(), path, std::move(state));
  }
  return result;
}

}  // namespace cohabit
