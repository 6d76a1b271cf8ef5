// What is equal in all repetitions of a line is the text between its numbers. It is hashed eight
// bytes at a time; numbers, and words of hexadecimal digits (addresses, identifiers), are passed
// over. A number that stands in some pattern (137, 0xC0000005) counts, unless it is a part of a
// time, a date, a fraction or a version, where any number occurs.
#include "explain/shapes.h"

#include <algorithm>
#include <array>

#include "base/eight_bytes.h"

namespace cohabit::explain {
namespace {

constexpr size_t kShortestAddress = 4;  // hexadecimal digits
constexpr size_t kLongestNamed = 10;
constexpr size_t kWholeNames = 6;      // C0000005 names no 0000005
constexpr size_t kLongestLine = 4096;  // that is compared
constexpr uint64_t kFactor = 0x9E3779B97F4A7C15U;

// What a byte can be a part of.
constexpr uint8_t kDigit = 1, kHexadecimal = 2, kWord = 4;
constexpr std::array<uint8_t, 256> kKinds = [] {
  std::array<uint8_t, 256> kinds{};
  for (unsigned c = '0'; c <= '9'; c++) kinds[c] = kDigit | kHexadecimal | kWord;
  for (unsigned c = 'a'; c <= 'z'; c++) {
    kinds[c] = kWord | (c <= 'f' ? kHexadecimal : 0);
    kinds[c - 'a' + 'A'] = kinds[c];
  }
  kinds['_'] = kWord;
  return kinds;
}();

inline bool is(uint8_t kind, char c) {
  return (kKinds[static_cast<unsigned char>(c)] & kind) != 0;
}

inline uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * kFactor;
  return hash ^ (hash >> 29U);
}

// Of the line, the bytes from `at` to `end`.
inline uint64_t mix(uint64_t hash, std::string_view line, size_t at, size_t end) {
  for (; at + 8 <= end; at += 8) hash = mix(hash, EightBytes::load(line.data() + at).bytes);
  if (at == end) return hash;
  const EightBytes rest = at + 8 <= line.size() ? EightBytes::load(line.data() + at)
                                                : EightBytes::load_some(line.data() + at, end - at);
  return mix(hash, rest.bytes & ~(~uint64_t{0} << (8 * (end - at))));
}

size_t find_digit(std::string_view text, size_t at) {
  for (; at + 8 <= text.size(); at += 8)
    if (const uint64_t flags = EightBytes::load(text.data() + at).digits(); flags)
      return at + EightBytes::first(flags);
  while (at < text.size() && !is(kDigit, text[at])) at++;
  return at;
}

size_t digits_end(std::string_view text, size_t at) {
  for (; at + 8 <= text.size(); at += 8)
    if (const uint64_t flags = EightBytes::load(text.data() + at).digits() ^ EightBytes::kHighs;
        flags)
      return at + EightBytes::first(flags);
  while (at < text.size() && is(kDigit, text[at])) at++;
  return at;
}

constexpr char kAny = 0;

// Without case: 0xc0000005 is 0xC0000005. At most sixteen bytes.
uint64_t number_hash(std::string_view text, size_t begin, size_t end) {
  uint64_t hash = end - begin;
  for (size_t at = begin; at < end; at += 8) {
    const size_t count = std::min<size_t>(8, end - at);
    const EightBytes bytes = at + 8 <= text.size() ? EightBytes::load(text.data() + at)
                                                   : EightBytes::load_some(text.data() + at, count);
    const uint64_t unwanted = count == 8 ? 0 : ~uint64_t{0} << (8 * count);
    hash = mix(hash, (bytes.bytes | (EightBytes::kOnes * 0x20)) & ~unwanted);
  }
  return hash;
}

// Of a number behind this byte.
size_t name_of(uint64_t hash, char before) {
  const uint64_t byte = before == kAny ? 0 : static_cast<unsigned char>(before | 0x20);
  return ((hash ^ byte) * kFactor) >> 50U;
}

// The byte that stands before this place in all that matches, or kAny.
char byte_before(std::string_view pattern, size_t at) {
  if (at == 0) return kAny;
  const char before = pattern[at - 1];
  const bool escaped = at > 1 && pattern[at - 2] == '\\';
  if (escaped) return is(kWord, before) ? kAny : before;
  return std::string_view("|()[]{}*+?.^$>\\").find(before) == std::string_view::npos ? before
                                                                                     : kAny;
}

// Behind a class of bytes, or a number of repetitions, if one begins here.
size_t after_brackets(std::string_view pattern, size_t at) {
  if ((pattern[at] != '[' && pattern[at] != '{') || (at > 0 && pattern[at - 1] == '\\')) return at;
  for (const char close = pattern[at] == '[' ? ']' : '}'; at < pattern.size(); at++)
    if (pattern[at] == close && pattern[at - 1] != '\\') return at + 1;
  return at;
}

struct Span {
  size_t begin = 0, end = 0;
  bool address = false;
};

bool begins_word(std::string_view text, size_t at) {
  return at == 0 || !is(kWord, text[at - 1]) ||
         (text[at - 1] == 'x' && at > 1 && text[at - 2] == '0');
}

// The number with this digit; the whole word, if it looks like an address.
Span number_at(std::string_view line, size_t digit, size_t from) {
  Span number{digit, digit, false};
  number.end = digits_end(line, digit);
  Span word = number;
  while (word.begin > from && is(kHexadecimal, line[word.begin - 1])) word.begin--;
  while (word.end < line.size() && is(kHexadecimal, line[word.end])) word.end++;
  const bool ends = word.end == line.size() || !is(kWord, line[word.end]);
  word.address = word.end - word.begin >= kShortestAddress && begins_word(line, word.begin) && ends;
  return word.address ? word : number;
}

// What is around two places, up to which the bytes before are the same in both.
struct TwoSpans {
  size_t begin = 0, other_begin = 0, end = 0, other_end = 0;
};

size_t end_of(std::string_view text, size_t at, uint8_t kind) {
  if (kind == kDigit) return digits_end(text, at);
  while (at < text.size() && is(kind, text[at])) at++;
  return at;
}

inline TwoSpans spans_at(std::string_view text, size_t at, size_t other, uint8_t kind) {
  TwoSpans spans{at, other, at, other};
  while (spans.other_begin > 0 && is(kind, text[spans.begin - 1]) &&
         text[spans.begin - 1] == text[spans.other_begin - 1]) {
    spans.begin--;
    spans.other_begin--;
  }
  spans.end = end_of(text, at, kind);
  spans.other_end = end_of(text, other, kind);
  return spans;
}

bool is_address(std::string_view text, size_t begin, size_t end) {
  if (end - begin < kShortestAddress || !begins_word(text, begin)) return false;
  if (end < text.size() && is(kWord, text[end])) return false;
  const std::string_view word = text.substr(begin, end - begin);
  return std::any_of(word.begin(), word.end(), [](char c) { return is(kDigit, c); });
}

bool joins(char c) {
  return c == ':' || c == '.' || c == ',' || c == '/' || c == '-';
}

// 2026-01-02 03:04:05,678; 0.25; 12/1000
bool is_part(std::string_view line, Span number) {
  const bool before =
      number.begin > 1 && joins(line[number.begin - 1]) && is(kDigit, line[number.begin - 2]);
  return before || (number.end + 1 < line.size() && joins(line[number.end]) &&
                    is(kDigit, line[number.end + 1]));
}

}  // namespace

void Shapes::name_numbers_of(std::string_view pattern) {
  for (size_t at = 0; at < pattern.size();) {
    if (const size_t after = after_brackets(pattern, at); after > at) {
      at = after;
      continue;
    }
    if (!is(kHexadecimal, pattern[at]) || (at > 0 && pattern[at - 1] == '\\')) {
      at++;
      continue;
    }
    const size_t begin = at;
    while (at < pattern.size() && is(kHexadecimal, pattern[at])) at++;
    add_name(pattern, begin, at);
    for (size_t i = begin; i < at && at - begin < kWholeNames; i++) {
      if (!is(kDigit, pattern[i])) continue;
      const size_t digits = i;
      while (i < at && is(kDigit, pattern[i])) i++;
      add_name(pattern, digits, i);
    }
  }
}

void Shapes::add_name(std::string_view pattern, size_t begin, size_t end) {
  const std::string_view number = pattern.substr(begin, end - begin);
  const bool any = std::any_of(number.begin(), number.end(), [](char c) { return is(kDigit, c); });
  if (!any || number.size() > kLongestNamed) return;
  const char before = byte_before(pattern, begin);
  if (number.size() == 1 && before == kAny) return;  // any counter would pass them
  names_.set(name_of(number_hash(pattern, begin, end), before));
  lengths_ |= 1U << number.size();
}

bool Shapes::tells_apart(std::string_view text, size_t begin, size_t end) const {
  const size_t length = end - begin;
  if (length > kLongestNamed || (lengths_ >> length & 1U) == 0) return false;
  if (is_part(text, {begin, end, false})) return false;
  const uint64_t hash = number_hash(text, begin, end);
  return names_[name_of(hash, kAny)] || (begin > 0 && names_[name_of(hash, text[begin - 1])]);
}

// Here the two differ: numbers, or addresses, of the one and the other are passed over.
bool Shapes::pass_numbers(std::string_view text, size_t& later, size_t& earlier,
                          bool& named) const {
  const auto ends_there = [&](size_t end) {
    return end == text.size() || !is(kHexadecimal, text[end]);
  };
  TwoSpans spans = spans_at(text, later, earlier, kDigit);
  const bool numbers = spans.end > spans.begin && spans.other_end > spans.other_begin &&
                       ends_there(spans.end) && ends_there(spans.other_end);
  if (!numbers) {
    spans = spans_at(text, later, earlier, kHexadecimal);
    if (!is_address(text, spans.begin, spans.end) ||
        !is_address(text, spans.other_begin, spans.other_end))
      return false;
  }
  // Behind equal numbers the lines go on differently.
  if (spans.end == later && spans.other_end == earlier) return false;
  named = named || tells_apart(text, spans.begin, spans.end);
  later = spans.end;
  earlier = spans.other_end;
  return true;
}

Shapes::Same Shapes::compare_lines(std::string_view text, size_t& later, size_t& earlier) const {
  size_t a = later, b = earlier;
  bool named = false;
  while (a + 8 <= text.size() && a - later < kLongestLine) {
    const EightBytes here = EightBytes::load(text.data() + a);
    const uint64_t ends = here.equal_to('\n') | here.equal_to('\r');
    const uint64_t differs = here.bytes ^ EightBytes::load(text.data() + b).bytes;
    const size_t same = differs == 0 ? 8 : EightBytes::first(differs);
    if (ends != 0 && EightBytes::first(ends) < same) {
      later = a + EightBytes::first(ends) + 1;
      earlier = b + EightBytes::first(ends) + 1;
      return named ? Same::kButForNamedNumbers : Same::kButForNumbers;
    }
    a += same;
    b += same;
    if (same < 8 && !pass_numbers(text, a, b, named)) return Same::kNo;
  }
  return Same::kNo;
}

Shapes::Shape Shapes::of(std::string_view line) const {
  Shape shape;
  uint64_t numbers = 0;
  for (size_t at = 0; at < line.size();) {
    const size_t digit = find_digit(line, at);
    if (digit == line.size()) {
      shape.all = mix(shape.all, line, at, line.size());
      break;
    }
    const Span number = number_at(line, digit, at);
    shape.all = mix(mix(shape.all, line, at, number.begin), '0');
    if (tells_apart(line, number.begin, number.end))
      numbers = mix(numbers, number_hash(line, number.begin, number.end));
    at = number.end;
  }
  shape.named = numbers == 0 ? shape.all : mix(shape.all, numbers);
  return shape;
}

size_t Places::exchange(uint64_t shape, size_t place) {
  Slot& slot = slots_[(shape * kFactor) >> 52U];
  const size_t before = slot.shape == shape ? slot.place : std::string_view::npos;
  slot = {shape, place};
  return before;
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
