// Numbers and texts in a row, for files that only we write: numbers in groups of seven bits, texts
// behind their length. What cannot be read (a file cut short) gives zeros and empty texts, and says
// so at the end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cohabit {

class Packer {
 public:
  void number(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  void text(std::string_view value) {
    number(value.size());
    bytes_ += value;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}

  uint64_t number() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) break;
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    return fail();
  }
  // Of things that take a byte or more each.
  size_t count() {
    const uint64_t value = number();
    return value <= rest_.size() ? static_cast<size_t>(value) : static_cast<size_t>(fail());
  }
  std::string_view text() {
    const std::string_view value = rest_.substr(0, count());
    rest_.remove_prefix(value.size());
    return value;
  }
  // Whether everything could be read, and nothing is left.
  bool is_whole() const { return !failed_ && rest_.empty(); }
  bool failed() const { return failed_; }
  size_t left() const { return rest_.size(); }

 private:
  uint64_t fail() {
    failed_ = true;
    rest_ = {};
    return 0;
  }
  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace cohabit
