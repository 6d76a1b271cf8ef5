// Bytes: a read-only run of bytes that cannot be read past its end.
//
// Every file we open may be truncated, lying or hostile, so this is the only place where an offset
// from a file is added to a pointer. Checks subtract instead of adding, so they cannot overflow.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>

namespace cohabit {

// A table of fixed-size records, unaligned, inside a Bytes. Indexing beyond size() gives T{}.
template <class T>
class Table {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Table() = default;
  Table(const uint8_t* data, uint64_t size) : data_(data), size_(size) {}
  uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T operator[](uint64_t i) const {
    T value{};
    if (i < size_) std::memcpy(&value, data_ + i * sizeof(T), sizeof(T));
    return value;
  }
  // Tells the processor that record i will be wanted soon.
  void prefetch(uint64_t i) const {
    if (i < size_) __builtin_prefetch(data_ + i * sizeof(T));
  }

 private:
  const uint8_t* data_ = nullptr;
  uint64_t size_ = 0;
};

class Bytes {
 public:
  Bytes() = default;
  Bytes(const void* data, uint64_t size) : data_(static_cast<const uint8_t*>(data)), size_(size) {}
  explicit Bytes(std::string_view text) : Bytes(text.data(), text.size()) {}

  uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

  bool contains(uint64_t offset, uint64_t length) const {
    return offset <= size_ && length <= size_ - offset;
  }
  // Empty result if [offset, offset+length) is not inside.
  std::optional<Bytes> slice(uint64_t offset, uint64_t length) const {
    if (!contains(offset, length)) return std::nullopt;
    return Bytes(data_ + offset, length);
  }
  // From offset to the end; empty when offset is outside.
  Bytes from(uint64_t offset) const {
    return offset <= size_ ? Bytes(data_ + offset, size_ - offset) : Bytes();
  }
  void prefetch(uint64_t offset) const {
    if (offset < size_) __builtin_prefetch(data_ + offset);
  }
  template <class T>
  std::optional<T> read(uint64_t offset) const {
    static_assert(std::is_trivially_copyable_v<T>);
    if (!contains(offset, sizeof(T))) return std::nullopt;
    T value;
    std::memcpy(&value, data_ + offset, sizeof(T));
    return value;
  }
  // The table of `count` records at offset, or nothing if it does not fit.
  template <class T>
  std::optional<Table<T>> table(uint64_t offset, uint64_t count) const {
    if (offset > size_ || count > (size_ - offset) / sizeof(T)) return std::nullopt;
    return Table<T>(data_ + offset, count);
  }
  // The NUL-terminated string at offset, without its NUL; nothing if no NUL follows.
  std::optional<std::string_view> c_string(uint64_t offset) const {
    if (offset >= size_) return std::nullopt;
    const void* end = std::memchr(data_ + offset, 0, size_ - offset);
    if (!end) return std::nullopt;
    const char* begin = reinterpret_cast<const char*>(data_ + offset);
    return std::string_view(begin, static_cast<const char*>(end) - begin);
  }

 private:
  const uint8_t* data_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace cohabit
