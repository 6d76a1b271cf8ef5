// What is equal in all repetitions of a line is the text between its numbers. It is hashed eight
// bytes at a time; numbers, and words of hexadecimal digits (addresses, identifiers), are passed
// over. A number that stands in some pattern (137, 0xC0000005) counts, unless it is a part of a
// time, a date, a fraction or a version, where any number occurs.
#include "explain/shapes.h"

#include <algorithm>

#include "base/eight_bytes.h"

namespace cohabit::explain {
namespace {

constexpr size_t kShortestAddress = 4;  // hexadecimal digits
constexpr uint64_t kFactor = 0x9E3779B97F4A7C15U;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_hexadecimal(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

inline uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * kFactor;
  return hash ^ (hash >> 29U);
}

inline uint64_t mix(uint64_t hash, std::string_view text) {
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) hash = mix(hash, EightBytes::load(text.data() + at).bytes);
  if (at == text.size()) return hash;
  return mix(hash, EightBytes::load_some(text.data() + at, text.size() - at).bytes);
}

size_t find_digit(std::string_view text, size_t at) {
  for (; at + 8 <= text.size(); at += 8)
    if (const uint64_t flags = EightBytes::load(text.data() + at).digits(); flags)
      return at + EightBytes::first(flags);
  while (at < text.size() && !is_digit(text[at])) at++;
  return at;
}

// Without case: 0xc0000005 is 0xC0000005.
uint64_t name_of(std::string_view number) {
  uint64_t hash = 0;
  for (const char c : number) hash = (hash ^ static_cast<unsigned char>(c | 0x20)) * kFactor;
  return hash >> 40U;
}

struct Span {
  size_t begin = 0, end = 0;
  bool address = false;
};

// The number with this digit; the whole word, if it looks like an address.
Span number_at(std::string_view line, size_t digit, size_t from) {
  Span number{digit, digit, false};
  while (number.end < line.size() && is_digit(line[number.end])) number.end++;
  Span word = number;
  while (word.begin > from && is_hexadecimal(line[word.begin - 1])) word.begin--;
  while (word.end < line.size() && is_hexadecimal(line[word.end])) word.end++;
  const bool begins =
      word.begin == 0 || !is_word(line[word.begin - 1]) ||
      (line[word.begin - 1] == 'x' && word.begin > 1 && line[word.begin - 2] == '0');
  const bool ends = word.end == line.size() || !is_word(line[word.end]);
  word.address = word.end - word.begin >= kShortestAddress && begins && ends;
  return word.address ? word : number;
}

bool joins(char c) {
  return c == ':' || c == '.' || c == ',' || c == '/' || c == '-';
}

// 2026-01-02 03:04:05,678; 0.25; 12/1000
bool is_part(std::string_view line, Span number) {
  const bool before =
      number.begin > 1 && joins(line[number.begin - 1]) && is_digit(line[number.begin - 2]);
  return before || (number.end + 1 < line.size() && joins(line[number.end]) &&
                    is_digit(line[number.end + 1]));
}

}  // namespace

void Shapes::name_numbers_of(std::string_view pattern) {
  for (size_t at = 0; at < pattern.size();) {
    if (!is_hexadecimal(pattern[at]) || (at > 0 && pattern[at - 1] == '\\')) {
      at++;
      continue;
    }
    const size_t begin = at;
    while (at < pattern.size() && is_hexadecimal(pattern[at])) at++;
    names_.set(name_of(pattern.substr(begin, at - begin)) % kNames);
    for (size_t i = begin; i < at; i++) {
      if (!is_digit(pattern[i])) continue;
      size_t end = i;
      while (end < at && is_digit(pattern[end])) end++;
      names_.set(name_of(pattern.substr(i, end - i)) % kNames);
      i = end;
    }
  }
}

bool Shapes::is_named(std::string_view number) const {
  return names_[name_of(number) % kNames];
}

Shapes::Shape Shapes::of(std::string_view line) const {
  Shape shape;
  uint64_t numbers = 0;
  for (size_t at = 0; at < line.size();) {
    const size_t digit = find_digit(line, at);
    if (digit == line.size()) {
      shape.all = mix(shape.all, line.substr(at));
      break;
    }
    const Span number = number_at(line, digit, at);
    shape.all = mix(mix(shape.all, line.substr(at, number.begin - at)), '0');
    const std::string_view digits = line.substr(number.begin, number.end - number.begin);
    if (digits.size() <= 10 && is_named(digits) && !is_part(line, number))
      numbers = mix(mix(numbers, number.begin == at ? 1 : 2), name_of(digits));
    at = number.end;
  }
  shape.named = numbers == 0 ? shape.all : mix(shape.all, numbers);
  return shape;
}

unsigned Counts::count(uint64_t value, unsigned most) {
  value = value < 256 ? value + 256 : value;  // not that of an empty slot
  const uint64_t key = value & ~uint64_t{0xFF};
  const size_t first = (value * kFactor) >> 48U;
  for (size_t i = 0; i < kProbes; i++) {
    uint64_t& slot = slots_[(first + i) % kSlots];
    if ((slot & ~uint64_t{0xFF}) == key) {
      const auto before = static_cast<unsigned>(slot & 0xFFU);
      if (before < most) slot++;
      return before;
    }
    if (slot == 0) {
      slot = key | 1U;
      return 0;
    }
  }
  slots_[(first + (value & (kProbes - 1))) % kSlots] = key | 1U;
  return 0;
}

}  // namespace cohabit::explain
