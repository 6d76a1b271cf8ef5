// A file of which parts are read: on this machine, or on a server that gives ranges.
#pragma once

#include <cstdint>
#include <string>

#include "base/mapped_file.h"
#include "base/result.h"

namespace cohabit::wheels {

class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;

  // Its last bytes, at most `length`; from then on size() is known.
  virtual Result<std::string> read_end(uint64_t length) = 0;
  // All of these bytes, or an error.
  virtual Result<std::string> read(uint64_t offset, uint64_t length) = 0;
  virtual uint64_t size() const = 0;
  virtual uint64_t fetched() const { return 0; }     // bytes that a server sent
  virtual bool came_whole() const { return false; }  // a server that has no ranges sent all of it
};

class LocalFile : public ByteSource {
 public:
  static Result<LocalFile> open(const std::string& path);
  explicit LocalFile(MappedFile map) : map_(std::move(map)) {}
  LocalFile(LocalFile&& other) noexcept : map_(std::move(other.map_)) {}

  Result<std::string> read_end(uint64_t length) override;
  Result<std::string> read(uint64_t offset, uint64_t length) override;
  uint64_t size() const override { return map_.bytes().size(); }

 private:
  MappedFile map_;
};

}  // namespace cohabit::wheels
