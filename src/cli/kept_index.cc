#include "cli/kept_index.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/packed.h"
#include "base/sections.h"
#include "base/watched_files.h"
#include "cli/kept_files.h"

namespace cohabit {
namespace {

constexpr std::string_view kFormat = "cohabit index 2";
constexpr std::string_view kKnownFormat = "cohabit known index 1\n";
constexpr uint64_t kLargestKnown = 4096;             // of a file that says which index is known
constexpr uint64_t kLargestCacheOfKnown = 64 << 10;  // all of them together
constexpr uint64_t kLargestFile = uint64_t{256} << 20;
constexpr uint64_t kLargestCache = uint64_t{768} << 20;  // all files together
constexpr size_t kWorthwhile = 20000;                    // references that were bound

// By which a file is known to be as it was. Empty: it has changed so shortly before `now` that it
// may change again and look the same.
std::string state_of(int fd, int64_t now) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return "";
  const int64_t modified = nanoseconds(status.st_mtim), changed = nanoseconds(status.st_ctim);
  if (std::max(modified, changed) >= now - WatchedFiles::kTick) return "";
  Packer packer;
  for (const uint64_t number :
       {uint64_t{status.st_dev}, uint64_t{status.st_ino}, static_cast<uint64_t>(status.st_size),
        static_cast<uint64_t>(modified), static_cast<uint64_t>(changed)})
    packer.number(number);
  return packer.bytes();
}

}  // namespace

KeptIndex::KeptIndex(std::string path, std::string known_path, std::string key, IndexedFiles files)
    : path_(std::move(path)),
      known_path_(std::move(known_path)),
      key_(std::move(key)),
      files_(files),
      start_(WatchedFiles::now()) {}

std::unique_ptr<KeptIndex> KeptIndex::open(const std::string& prefix, IndexedFiles files) {
  const std::string path = kept_path("index", prefix);
  if (path.empty()) return nullptr;
  Packer packer;
  packer.text(kFormat);
  pack_ourselves(packer);
  std::unique_ptr<KeptIndex> index(
      new KeptIndex(path, kept_path("known", prefix), packer.bytes(), files));
  index->taking_ =
      std::async(std::launch::async | std::launch::deferred, [&index = *index] { index.take(); });
  return index;
}

void KeptIndex::wait() {
  if (taking_.valid()) taking_.get();
}

void KeptIndex::take() {
  const Descriptor file(open_kept(path_, kLargestFile));
  if (!file.is_open()) return;
  auto map = MappedFile::map(file.get(), path_);
  if (!map) return;
  files_.file = std::move(*map);
  MappedFile::populate(files_.file.bytes());
  const std::string state = state_of(file.get(), start_);
  auto sections = SectionReader::open(files_.file.bytes(), key_, is_known(state));
  if (!sections || files_.file.damaged()) return;
  Unpacker unpacker(sections->next_text());
  if (sections->failed() || !files_.images.take_index(unpacker, *sections)) return;
  taken_images_ = files_.images.size();
  if (!files_.bindings.take(files_.images, unpacker, *sections)) return;
  taken_bindings_ = files_.bindings.size();
  if (!sections->is_known()) checked_ = state;
}

bool KeptIndex::is_known(const std::string& state) const {
  if (state.empty()) return false;
  const auto known = read_kept(known_path_, kKnownFormat, kLargestKnown);
  return known && known->text == key_ + state;
}

void KeptIndex::note_known() const {
  if (!checked_.empty())
    replace_kept(known_path_, kKnownFormat, key_ + checked_, kLargestKnown, kLargestCacheOfKnown);
}

// Two changes within one tick of a file system's clock look like one.
bool KeptIndex::is_old_enough() const {
  for (ImageId id = 0; id < files_.images.size(); id++)
    if (files_.images[id].changed >= start_ - WatchedFiles::kTick) return false;
  return true;
}

void KeptIndex::save() {
  wait();
  note_known();
  const size_t now = files_.bindings.size();
  const bool is_more = files_.images.size() > taken_images_ || now > taken_bindings_ * 21 / 20;
  if (now < kWorthwhile || !is_more || !is_old_enough()) return;
  Packer packer;
  SectionWriter content;
  if (!files_.images.give_index(packer, content)) return;
  files_.bindings.give(packer, content);
  SectionWriter sections;
  sections.add(std::span<const char>(packer.bytes()));
  sections.add(content);
  if (sections.size() > kLargestFile) return;
  replace_kept(path_, kLargestCache, [&](int fd) { return sections.write(fd, key_); });
}

}  // namespace cohabit
