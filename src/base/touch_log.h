// What an examination asks of files: a bundle is packed from it (cohabit capture), and on a bundle
// it tells what was asked in vain.
//
// A mapped file is made inaccessible at first: the first read of each unit is a fault, which notes
// it and gives access (mapped_file.cc). The kernel's page tables would not do: it takes pages away
// when memory is short. On a bundle the parts that were not packed are holes, and these alone are
// inaccessible, so that a zero is not taken for a fact. Where the paths alone are wanted
// (watched_files.h) nothing is guarded.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/tree.h"

namespace cohabit {

constexpr uint64_t kTouchUnit = 1 << 14;  // of a mapped file, in bytes; of whole pages

class TouchLog {
 public:
  enum class Of : uint8_t { kMachine, kBundle, kPaths };
  using Ranges = std::map<uint64_t, uint64_t>;  // begin: end; they may overlap

  struct Touched {
    bool is_there = false;  // at the last time that it was asked for
    bool listed = false;    // a directory whose names were read
    bool resolved = false;  // it was asked where links lead
    Ranges ranges;
  };

  // Of a file and a kind of work (MappedFile::extract), what it gave. By one path of the file: by
  // which of them it is opened depends on who finds it first.
  using Words = std::vector<std::string>;
  using Extracts = std::map<std::pair<std::string, std::string>, Words>;

  explicit TouchLog(Of of) : of_(of) {}
  TouchLog(const TouchLog&) = delete;

  // By path as it was asked for. Of a machine: all of them; of a bundle: those that were listed or
  // not found.
  const std::map<std::string, Touched>& paths() const { return paths_; }
  // The same while other threads go on asking.
  std::map<std::string, Touched> paths_so_far() const;
  // Of a bundle: files whose content is not there as a whole, and more was read than is there.
  const std::set<std::string>& lacking() const { return lacking_; }

  bool is_of_bundle() const { return of_ == Of::kBundle; }
  bool wants_pages() const { return of_ != Of::kPaths; }
  const Extracts& extracts() const { return extracts_; }
  // `paths`: of each file that they are of, by which path.
  void set_extracts(Extracts known, std::map<FileId, std::string> paths) {
    extracts_ = std::move(known);
    path_of_ = std::move(paths);
  }
  // `data`: where the file is mapped.
  std::optional<Words> extract_of(const void* data, const std::string& kind);
  void add_extract(const void* data, const std::string& kind, const Words& words);

  void asked(const std::string& path, bool is_there);
  void resolved(const std::string& path, bool is_there);
  void listed(const std::string& path, bool is_there);
  // The first `count` bytes of a file were read; `fd` is open on it.
  void read(const std::string& path, int fd, uint64_t count);
  // `id`: of the file, which `fd` is open on. `can_guard`: a read of an inaccessible page will be
  // survived.
  // The flags to set, one for each unit; null: no unit is to be noted.
  uint8_t* mapped(const std::string& path, FileId id, int fd, void* data, uint64_t size,
                  bool can_guard);
  // Before it is unmapped; `read_hole`: what a guard of mapped() said.
  void unmapped(const void* data, uint64_t size, bool read_hole);

 private:
  const Of of_;
  mutable std::mutex mutex_;  // plans are made on a thread of their own
  std::map<std::string, Touched> paths_;
  struct Map {
    std::string path;
    std::vector<uint8_t> touched;
    std::string first_path;  // of the file, by which its extracts stand
  };
  std::map<const void*, Map> maps_;
  std::set<std::string> lacking_;
  Extracts extracts_;
  std::map<FileId, std::string> path_of_;
};

}  // namespace cohabit
