// Eight bytes of text at once, in one register: what a loop over single bytes takes ten times as
// long for. Flags are the high bits of their bytes; the first byte is the lowest one.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace cohabit {

static_assert(std::endian::native == std::endian::little);

struct EightBytes {
  static constexpr uint64_t kOnes = 0x0101010101010101U;
  static constexpr uint64_t kHighs = 0x8080808080808080U;
  static constexpr uint64_t kLows = ~kHighs;

  uint64_t bytes = 0;

  static EightBytes load(const char* at) {
    EightBytes loaded;
    std::memcpy(&loaded.bytes, at, sizeof loaded.bytes);
    return loaded;
  }
  // Fewer than eight; the rest is zero.
  static EightBytes load_some(const char* at, size_t count) {
    EightBytes loaded;
    std::memcpy(&loaded.bytes, at, count);
    return loaded;
  }
  uint64_t equal_to(char c) const {
    const uint64_t other = bytes ^ (kOnes * static_cast<unsigned char>(c));
    return ~(((other & kLows) + kLows) | other | kLows);
  }
  uint64_t digits() const {
    const uint64_t value = bytes ^ (kOnes * '0');
    return ~(((value & kLows) + kOnes * (0x80 - 10)) | value) & kHighs;
  }
  // A to Z as a to z, all else as it is.
  EightBytes lower() const {
    const uint64_t low = bytes & kLows;
    const uint64_t upper =
        ((low + kOnes * (0x80 - 'A')) ^ (low + kOnes * (0x7F - 'Z'))) & ~bytes & kHighs;
    return {bytes | (upper >> 2U)};
  }
  static size_t first(uint64_t flags) { return static_cast<size_t>(std::countr_zero(flags)) / 8; }
  static size_t last(uint64_t flags) {
    return 7 - static_cast<size_t>(std::countl_zero(flags)) / 8;
  }
};

}  // namespace cohabit
