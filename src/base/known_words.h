// What was worked out of whole files (MappedFile::extract), by file as it was: device, inode, size
// and both of its times, and by the kind of the work.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/packed.h"

namespace cohabit {

class KnownWords {
 public:
  using Words = std::vector<std::string>;
  struct File {
    uint64_t device = 0, inode = 0, size = 0;
    int64_t modified = 0, changed = 0;  // nanoseconds of the clock
    auto operator<=>(const File&) const = default;
  };

  // All may be called on several threads.
  std::optional<Words> find(const File& file, const std::string& kind);
  void add(const File& file, const std::string& kind, const Words& words);
  bool has_new() const;

  // Those of files that have not changed since `before`, which tells one state of a file from the
  // next. What was not asked for may be left out.
  void pack(Packer& packer, int64_t before, bool with_unasked) const;
  // What pack has written; false, and none: it cannot be read. `owner` is held as long as the text
  // is needed.
  bool unpack(std::string_view text, std::shared_ptr<const void> owner);

 private:
  struct Known {
    std::string_view packed;  // the words: unpacked when they are asked for
    std::string own;          // what `packed` refers to, if that is of none of owners_
    bool is_asked = true;
  };
  using Of = std::pair<File, std::string>;

  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<const void>> owners_;
  std::map<Of, Known> known_;
  bool has_new_ = false;
};

}  // namespace cohabit
