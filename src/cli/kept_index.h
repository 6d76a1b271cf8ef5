// The index of names, and what references were bound to, kept from one run to the next in the
// user's cache directory.
//
// Both are facts about files: which names each has and refers to, and which definition each of its
// references gets where these files stand in its scope in this order. They are taken again only
// while every file is the same (device, inode, size and both of its times), and never instead of a
// simulation or a judgement. Of a small process nothing is kept: its files are read as fast.
//
// What is kept is held against its digest, and its numbers against each other, by the first run
// that takes it. Which file that was is kept too: while it is the same, later runs believe it.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <string>

#include "base/mapped_file.h"
#include "sim/binding_cache.h"
#include "world/images.h"

namespace cohabit {

// Of one thread's images and bindings. `file` is mapped as long as they are there.
struct IndexedFiles {
  MappedFile& file;
  Images& images;
  sim::BindingCache& bindings;
};

class KeptIndex {
 public:
  // Begins to take what an earlier run has kept of the environment with this prefix, while the
  // caller goes on with other things. Null: the user has no place for it, or does not want it.
  static std::unique_ptr<KeptIndex> open(const std::string& prefix, IndexedFiles files);
  // Before anything is asked of the images or bindings.
  void wait();
  // Writes down what they are now, if there is much more to it. Nobody changes them meanwhile.
  void save();

 private:
  KeptIndex(std::string path, std::string known_path, std::string key, IndexedFiles files);
  void take();
  bool is_known(const std::string& state) const;
  void note_known() const;
  bool is_old_enough() const;

  std::string path_, known_path_, key_;
  std::string checked_;  // the state of the file that this run has checked; empty: of none
  IndexedFiles files_;
  int64_t start_;
  size_t taken_images_ = 0, taken_bindings_ = 0;
  std::future<void> taking_;  // last, so that it ends first
};

}  // namespace cohabit
