// A file of arrays as they lie in memory, for the program that wrote it, on the same machine: it is
// mapped and read in place. Damage is seen by a digest of all of it (XXH3, which is no protection
// against whoever may write to it).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/bytes.h"

namespace cohabit {

// XXH3, 64 bits.
uint64_t digest_of(Bytes text);

class SectionWriter {
 public:
  // What is added stays as it is until it is written.
  template <class T>
  void add(std::span<const T> records) {
    static_assert(std::is_trivially_copyable_v<T>);
    sections_.emplace_back(records.data(), records.size_bytes());
  }
  void add(const SectionWriter& others) {
    sections_.insert(sections_.end(), others.sections_.begin(), others.sections_.end());
  }
  // `key`: who may read it. False: it could not be written.
  bool write(int fd, std::string_view key) const;
  uint64_t size() const;  // about, bytes

 private:
  std::vector<Bytes> sections_;
};

class SectionReader {
 public:
  // Of a whole file, at the start of a page, that outlives it. Nothing: it is damaged, or
  // another's. `is_known`: an earlier run of this program has opened this very file, and has held
  // its numbers against each other; this one need not.
  static std::optional<SectionReader> open(Bytes file, std::string_view key, bool is_known = false);

  bool is_known() const { return is_known_; }

  // The next one. Of another size than that of whole records, or none: empty, and it has failed.
  template <class T>
  std::span<const T> next() {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
    const Bytes section = next_bytes();
    if (section.size() % sizeof(T) != 0) failed_ = true;
    if (failed_) return {};
    return {reinterpret_cast<const T*>(section.text().data()), section.size() / sizeof(T)};
  }
  std::string_view next_text() { return next_bytes().text(); }
  bool failed() const { return failed_; }

 private:
  friend class SectionWriter;
  static constexpr uint64_t kAlignment = 64;
  Bytes next_bytes();

  Bytes file_;
  Table<uint64_t> sizes_;
  uint64_t index_ = 0, at_ = 0;
  bool failed_ = false, is_known_ = false;
};

}  // namespace cohabit
