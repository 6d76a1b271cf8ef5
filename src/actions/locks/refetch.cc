#include "actions/locks/refetch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>

#include "actions/check/expected_environment.h"
#include "actions/check/fetch.h"
#include "actions/locks/kept_metadata.h"
#include "base/changes.h"
#include "base/paths.h"
#include "facts/python/installed_files.h"
#include "facts/wheels/zip_directory.h"

namespace cohabit::locks {
namespace {

constexpr uint64_t kMostBytes = uint64_t{4} << 30;  // of one file

// A spoiled file, and what of a distribution it is.
struct Lost {
  SpoiledFile* spoiled = nullptr;
  const SnapshotFile* row = nullptr;
  std::string record_path;  // as RECORD names it
  bool is_fetched = false;
};

using LostFiles = std::map<const Distribution*, std::vector<Lost>>;

LostFiles by_distribution(const Snapshot& wanted, const KeptMetadata& kept,
                          std::vector<SpoiledFile>& spoiled) {
  std::map<std::string, SpoiledFile*> by_path;
  for (SpoiledFile& one : spoiled) by_path.emplace(kept.prefix() + "/" + one.path, &one);
  std::map<std::string_view, const SnapshotFile*> rows;
  for (const SnapshotFile& row : wanted.files) rows.emplace(row.path, &row);
  const InstalledFiles files = InstalledFiles::read(Tree(""), kept.distributions);
  LostFiles lost;
  for (const InstalledFiles::Row& row : files.rows()) {
    const auto found = by_path.find(files.path_of(row));
    if (found == by_path.end()) continue;
    lost[&kept.distributions.all()[row.distribution]].push_back(
        {found->second, rows.at(found->second->path), std::string(row.record.path), false});
  }
  return lost;
}

// Makes the bytes an object, under a name that no object has.
Result<std::string> keep(Store& store, const SnapshotFile& row, const std::string& bytes) {
  std::string object = row.object;
  const std::string base = object.substr(0, object.find('-'));
  for (int i = 1; store.objects().contains(object); i++) object = fmt::format("{}-{}", base, i);
  if (auto made = store.make_object_directory(object); !made)
    return tl::unexpected<Error>(made.error());
  const std::string staged = store.path("stage/fetched");
  (void)disk::unlink(staged);
  if (auto written = disk::write_new(staged, bytes); !written)
    return disk::to_error(written.error());
  const auto copied =
      disk::copy(staged, store.object_path(object), {row.mode, row.uid, row.gid, row.modified});
  (void)disk::unlink(staged);
  if (!copied) return disk::to_error(copied.error());
  if (auto flushed = disk::flush(store.path("")); !flushed) return disk::to_error(flushed.error());
  store.add_object(object);
  if (Entry entry; look_at(store.object_path(object), entry))
    store.learn(entry, {0, 0, 0, row.hash, true, object});
  return object;
}

class Fetching {
 public:
  Fetching(Store& store, const Question& question, Snapshot& healed)
      : store_(store),
        question_(question),
        healed_(healed),
        settings_(check::web_settings(question.installer, {question.places, false})) {}

  void fetch(const Distribution& distribution, const FoundWheel& wheel, std::vector<Lost>& lost);
  std::vector<std::string>& fetched() { return fetched_; }

 private:
  void fetch_one(const FoundWheel& wheel, wheels::ByteSource& source,
                 const wheels::ZipDirectory& directory, const std::string& name, Lost& lost);

  Store& store_;
  const Question& question_;
  Snapshot& healed_;
  const wheels::WebSettings settings_;  // pip is asked for it: once
  std::vector<std::string> fetched_;
};

void Fetching::fetch_one(const FoundWheel& wheel, wheels::ByteSource& source,
                         const wheels::ZipDirectory& directory, const std::string& name,
                         Lost& lost) {
  const auto member = std::find_if(
      directory.members.begin(), directory.members.end(), [&](const wheels::ZipMember& one) {
        return wheels::installed_path(one.name, name, question_.layout) == lost.record_path;
      });
  const auto refuse = [&](const std::string& why) {
    lost.spoiled->why += fmt::format("; {} {}", wheel.wheel.file, why);
  };
  if (member == directory.members.end()) return refuse("does not have it");
  const auto bytes = wheels::read_zip_member(source, directory, *member, kMostBytes);
  if (!bytes) return refuse("cannot be read: " + bytes.error().message);
  if (sha256(Bytes(*bytes)) != lost.row->hash) return refuse("has other bytes");
  const auto object = keep(store_, *lost.row, *bytes);
  if (!object) return refuse("has it, but " + object.error().message);
  lost.is_fetched = true;
  fetched_.push_back(fmt::format("{}, from {}", lost.row->path, wheel.wheel.file));
  for (SnapshotFile& row : healed_.files)
    if (row.path == lost.row->path) {
      row.object = *object;
      row.was_read = true;
    }
}

void Fetching::fetch(const Distribution& distribution, const FoundWheel& wheel,
                     std::vector<Lost>& lost) {
  const auto refuse = [&](const std::string& why) {
    for (Lost& one : lost) one.spoiled->why += "; " + why;
  };
  if (wheel.wheel.address.empty())
    return refuse(fmt::format("{} {} cannot be had again: {}", distribution.name,
                              distribution.version, wheel.why));
  auto source = check::open_wheel(wheel.wheel.address, settings_);
  if (!source) return refuse(source.error().message);
  const auto directory = wheels::read_zip_directory(**source);
  if (!directory) return refuse(directory.error().message);
  for (Lost& one : lost) fetch_one(wheel, **source, *directory, distribution.name, one);
}

// Under its old time: snapshots are listed by it.
void write_healed(Store& store, const Snapshot& healed) {
  const std::string file = store.path("snapshots/" + healed.name);
  Entry before;
  const bool is_there = look_at(file, before);
  if (!store.write(healed) || !is_there) return;
  constexpr int64_t kSecond = 1'000'000'000;
  const timespec time{before.modified / kSecond, before.modified % kSecond};
  const timespec times[2] = {time, time};
  (void)::utimensat(AT_FDCWD, file.c_str(), times, 0);
}

}  // namespace

Refetched fetch_again(Store& store, const Snapshot& wanted, const check::Installer& installer,
                      const Interpreter& python, std::vector<SpoiledFile> spoiled) {
  Refetched result;
  const auto kept = read_kept_metadata(store, wanted);
  if (!kept || kept->site.empty()) {
    result.left = std::move(spoiled);
    return result;
  }
  Interpreter there = python;
  there.prefix = kept->prefix();
  const Question question{installer, &python, check::layout_of(there, kept->site), {}};
  LostFiles lost = by_distribution(wanted, *kept, spoiled);
  std::vector<const Distribution*> distributions;
  for (const auto& [distribution, files] : lost) distributions.push_back(distribution);
  const std::vector<FoundWheel> wheels = find_wheels(question, distributions);
  Snapshot healed = wanted;
  Fetching fetching(store, question, healed);
  for (size_t i = 0; i < distributions.size(); i++)
    fetching.fetch(*distributions[i], wheels[i], lost[distributions[i]]);
  if (!fetching.fetched().empty()) {
    write_healed(store, healed);
    (void)store.write_index();
  }
  std::map<std::string, bool> is_fetched;
  for (const auto& [distribution, files] : lost)
    for (const Lost& one : files) is_fetched[one.spoiled->path] |= one.is_fetched;
  for (SpoiledFile& one : spoiled)
    if (!is_fetched[one.path]) result.left.push_back(std::move(one));
  result.fetched = std::move(fetching.fetched());
  return result;
}

}  // namespace cohabit::locks
