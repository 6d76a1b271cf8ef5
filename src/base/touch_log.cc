#include "base/touch_log.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace cohabit {
namespace {

constexpr uint64_t kPage = 4096;
void add_range(TouchLog::Ranges& ranges, uint64_t begin, uint64_t end) {
  uint64_t& last = ranges[begin];
  last = std::max(last, end);
}

// File systems without holes have none: nothing is guarded then.
void guard_holes(int fd, void* data, uint64_t size) {
  const auto begin = reinterpret_cast<uintptr_t>(data);
  off_t at = 0;
  while (static_cast<uint64_t>(at) < size) {
    const off_t hole = ::lseek(fd, at, SEEK_HOLE);
    if (hole < 0 || static_cast<uint64_t>(hole) >= size) break;
    const off_t next = ::lseek(fd, hole, SEEK_DATA);
    const uint64_t end = next < 0 ? size : static_cast<uint64_t>(next);
    const uint64_t first = (static_cast<uint64_t>(hole) + kPage - 1) / kPage * kPage;
    if (first < end)
      (void)::mprotect(reinterpret_cast<void*>(begin + first), end - first, PROT_NONE);
    at = static_cast<off_t>(end);
  }
}

}  // namespace

std::map<std::string, TouchLog::Touched> TouchLog::paths_so_far() const {
  const std::lock_guard lock(mutex_);
  return paths_;
}

void TouchLog::asked(const std::string& path, bool is_there) {
  if (of_ == Of::kBundle && is_there) return;
  const std::lock_guard lock(mutex_);
  paths_[path].is_there = is_there;
}

void TouchLog::resolved(const std::string& path, bool is_there) {
  if (of_ == Of::kBundle && is_there) return;
  const std::lock_guard lock(mutex_);
  Touched& touched = paths_[path];
  touched.is_there = is_there;
  touched.resolved = true;
}

void TouchLog::listed(const std::string& path, bool is_there) {
  const std::lock_guard lock(mutex_);
  Touched& touched = paths_[path];
  touched.is_there = is_there;
  touched.listed = true;
}

void TouchLog::read(const std::string& path, int fd, uint64_t count) {
  const std::lock_guard lock(mutex_);
  if (of_ != Of::kBundle) return add_range(paths_[path].ranges, 0, count);
  const off_t hole = ::lseek(fd, 0, SEEK_HOLE);
  if (hole >= 0 && static_cast<uint64_t>(hole) < count) lacking_.insert(path);
}

uint8_t* TouchLog::mapped(const std::string& path, FileId id, int fd, void* data, uint64_t size,
                          bool can_guard) {
  const std::lock_guard lock(mutex_);
  Map& map = maps_[data];
  map = {path, {}, path_of_.try_emplace(id, path).first->second};
  if (of_ == Of::kBundle) {
    if (can_guard) guard_holes(fd, data, size);
    return nullptr;
  }
  const uint64_t units = (size + kTouchUnit - 1) / kTouchUnit;
  const bool guarded = can_guard && ::mprotect(data, size, PROT_NONE) == 0;
  map.touched.assign(units, guarded ? 0 : 1);  // what cannot be noted counts as read
  return guarded ? map.touched.data() : nullptr;
}

void TouchLog::unmapped(const void* data, uint64_t size, bool read_hole) {
  const std::lock_guard lock(mutex_);
  const auto found = maps_.extract(data);
  if (found.empty()) return;
  const auto& [path, touched, first_path] = found.mapped();
  if (read_hole) lacking_.insert(path);
  for (uint64_t i = 0; i < touched.size();) {
    const uint64_t first = i;
    while (i < touched.size() && touched[i] != 0) i++;
    if (i > first)
      add_range(paths_[path].ranges, first * kTouchUnit, std::min(size, i * kTouchUnit));
    i++;
  }
}

std::optional<TouchLog::Words> TouchLog::extract_of(const void* data, const std::string& kind) {
  const std::lock_guard lock(mutex_);
  const auto map = maps_.find(data);
  if (map == maps_.end()) return std::nullopt;
  const auto known = extracts_.find({map->second.first_path, kind});
  return known == extracts_.end() ? std::nullopt : std::optional(known->second);
}

void TouchLog::add_extract(const void* data, const std::string& kind, const Words& words) {
  const std::lock_guard lock(mutex_);
  if (const auto map = maps_.find(data); map != maps_.end())
    extracts_.try_emplace({map->second.first_path, kind}, words);
}

}  // namespace cohabit
