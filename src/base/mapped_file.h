// A whole file, mapped read-only. Only touched pages are read, so a library of hundreds of
// megabytes costs what is looked at.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace cohabit {

class KnownWords;
class TouchLog;

class MappedFile {
 public:
  // Maps `fd` (not consumed). `name` is for messages. An empty file gives empty bytes().
  // `log`, if given, outlives it and gets what is read of it; `words`, if given, outlives it and is
  // what is known of extract().
  static Result<MappedFile> map(int fd, const std::string& name, TouchLog* log = nullptr,
                                KnownWords* words = nullptr);

  MappedFile();
  MappedFile(MappedFile&& other) noexcept : MappedFile() { swap(other); }
  MappedFile& operator=(MappedFile&& other) noexcept {
    swap(other);
    return *this;
  }
  ~MappedFile();

  Bytes bytes() const { return Bytes(data_, size_); }
  // What `read` works out of all of its bytes, or of most, once as long as it is mapped: a log
  // notes the words and not the bytes, and those of a bundle are taken from it. `kind` tells one
  // such work from another.
  using Words = std::vector<std::string>;
  Words extract(const std::string& kind, const std::function<Words(Bytes)>& read) const;
  // The same of a question with yes or no, of which there may be thousands: "`kind` `text`".
  // Without a log nothing is kept. `read` gets the same bytes each time.
  bool answer(std::string_view kind, std::string_view text,
              const std::function<bool(Bytes)>& read) const;
  // Maps the pages of a part of bytes() in one go: for what is about to be read as a whole, at
  // random. A hint: whatever goes wrong shows when the bytes are read.
  static void populate(Bytes part);
  // True once a page of it could not be read (the file shrank while mapped, or the disk failed):
  // the missing bytes read as zero from then on, and what was made of them is not to be trusted.
  bool damaged() const;

 private:
  Words work_out(const std::string& kind, const std::function<Words(Bytes)>& read) const;
  void swap(MappedFile& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(slot_, other.slot_);
    std::swap(log_, other.log_);
    std::swap(unnoted_, other.unnoted_);
    std::swap(extracts_, other.extracts_);
  }
  void* data_ = nullptr;
  uint64_t size_ = 0;
  int slot_ = -1;
  TouchLog* log_ = nullptr;
  std::unique_ptr<MappedFile> unnoted_;  // the same bytes, for extract() on a machine with a log
  struct Extracts;
  std::unique_ptr<Extracts> extracts_;
};

}  // namespace cohabit
