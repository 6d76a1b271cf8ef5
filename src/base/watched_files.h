// What was asked of files, so that it can be seen later whether the answers would be the same.
//
// A file counts as unchanged while its device, inode, size, mode and both of its times are; a
// directory whose names were read likewise, one that was only seen to be there while it is the same
// directory; what was not there while it is not there, for the same reason. The kernel sets the
// second time (of the inode), and nobody can set it back: but two changes within one tick of its
// clock look like one, so that what has changed just now is not believed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/neighbours.h"
#include "base/packed.h"
#include "base/real_paths.h"
#include "base/touch_log.h"

namespace cohabit {

class WatchedFiles {
 public:
  WatchedFiles() = default;
  // Everything in a log whose first entry was made after `start` (nanoseconds of the clock), as it
  // is now; others may go on writing to it. Nothing: something has changed since then, or shortly
  // before.
  static std::optional<WatchedFiles> of(const TouchLog& log, int64_t start);
  static int64_t now();
  static constexpr int64_t kTick = 2'000'000'000;  // the coarsest clock of a file system in use

  bool is_unchanged() const;
  // Together with others; false: they contradict each other.
  bool add(const WatchedFiles& others);
  size_t size() const { return files_.size(); }

  void pack(Packer& packer) const;
  static WatchedFiles unpack(Unpacker& unpacker);

 private:
  static constexpr unsigned kNames = 1, kContent = 2, kLinks = 4;  // what was asked
  struct State {
    uint8_t asked = 0;
    int error = 0;  // errno; 0: it is there
    uint64_t device = 0, inode = 0, size = 0, mode = 0;
    int64_t modified = 0, changed = 0;  // nanoseconds
    std::string more;                   // where links lead; what /proc and /sys say
  };
  using Entry = std::map<std::string, State>::value_type;
  struct Looking {  // at many, at one time
    Neighbours neighbours;
    RealPaths real_paths;
  };
  static State look(const std::string& path, uint8_t asked, Looking& looking);
  static bool is_same(const State& before, const State& now);

  std::map<std::string, State> files_;  // by path as it was asked for
};

}  // namespace cohabit
