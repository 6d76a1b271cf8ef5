// Bytes as hexadecimal digits, two each, in lower case.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cohabit {

// `bytes`: a range of chars or of uint8_t.
template <class Bytes>
std::string hexadecimal_of(const Bytes& bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits;
  digits.reserve(bytes.size() * 2);
  for (const auto one : bytes) {
    const auto byte = static_cast<uint8_t>(one);
    digits += kDigits[byte >> 4U];
    digits += kDigits[byte & 15U];
  }
  return digits;
}

// 0 to 15; -1: it is none in lower case.
inline int hexadecimal_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace cohabit
