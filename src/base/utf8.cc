#include "base/utf8.h"

#include <cstdint>
#include <cstring>

namespace cohabit {
namespace {

// How many bytes the UTF-8 sequence at the start takes; 0 when it is none.
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(i < text.size() ? text[i] : 0); };
  const auto follows = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const uint8_t first = byte(0), second = byte(1);
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    if (first == 0xe0 && second < 0xa0) return 0;
    if (first == 0xed && second > 0x9f) return 0;
    return follows(1) && follows(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    if (first == 0xf0 && second < 0x90) return 0;
    if (first == 0xf4 && second > 0x8f) return 0;
    return follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

// Where the next byte is that is not ASCII.
size_t find_high_byte(std::string_view text, size_t at) {
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, 8);
    if ((word & 0x8080808080808080u) != 0) break;
  }
  while (at < text.size() && (text[at] & 0x80) == 0) at++;
  return at;
}

}  // namespace

size_t find_stray_byte(std::string_view text) {
  size_t at = find_high_byte(text, 0);
  for (; at < text.size(); at = find_high_byte(text, at)) {
    const size_t length = sequence_length(text.substr(at, 4));
    if (length == 0) return at;
    at += length;
  }
  return at;
}

bool is_utf8(std::string_view text) {
  return find_stray_byte(text) == text.size();
}

}  // namespace cohabit
