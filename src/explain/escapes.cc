// A byte belongs to a sequence if one before it began it, so that a loop over bytes waits for each
// of them. What most sequences are, ESC [ parameters final (colours), is found 64 bytes at a time
// instead, one bit for each: with the parameters' bits set, adding the bit where parameters begin
// carries to where they end (as in Cameron's Parabix). What else there is ends such a block and is
// read byte by byte. `why` on 100 MB of nothing but colours takes 34 ms instead of 102
// (bench/why_speed, two processors).
#include "explain/escapes.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/together.h"

namespace cohabit::explain {
namespace {

constexpr char kEscape = '\x1b';
constexpr size_t kMaxTitle = 4096;
constexpr size_t kBlock = 64;
constexpr size_t kWord = 8;  // is copied at once

bool is_parameter(char c) {
  return c >= 0x20 && c < 0x40;
}

// What ends a sequence and belongs to it: a control character, another ESC above all, is none of
// it.
bool is_final(char c) {
  return c >= 0x40 && c < 0x7F;
}

// ESC [ parameters final; ESC ] text BEL or ESC \ (titles, links); ESC and one byte.
size_t after_escape(std::string_view text, size_t at) {
  size_t i = at + 1;
  if (i >= text.size()) return i;
  if (text[i] == '[') {
    for (i++; i < text.size() && is_parameter(text[i]);) i++;
    return i < text.size() && is_final(text[i]) ? i + 1 : i;
  }
  if (text[i] != ']') return is_parameter(text[i]) || is_final(text[i]) ? i + 1 : i;
  const size_t limit = std::min(text.size(), at + kMaxTitle);
  for (; i < limit; i++) {
    if (text[i] == '\a') return i + 1;
    if (text[i] == kEscape) return i + (i + 1 < text.size() && text[i + 1] == '\\' ? 2 : 0);
    if (text[i] == '\n') return i;
  }
  return i;
}

// Of 64 bytes, the first in the lowest bit.
struct Bits {
  uint64_t escapes = 0, brackets = 0, parameters = 0, finals = 0;
};

#ifdef __SSE2__
Bits bits_of(const char* at) {
  const __m128i escape = _mm_set1_epi8(kEscape), bracket = _mm_set1_epi8('[');
  const __m128i space = _mm_set1_epi8(0x1F), at_sign = _mm_set1_epi8(0x3F);
  const __m128i del = _mm_set1_epi8(0x7F);
  Bits bits;
  for (unsigned i = 0; i < kBlock; i += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + i));
    const auto mask = [i](__m128i flags) {
      return uint64_t{static_cast<uint32_t>(_mm_movemask_epi8(flags))} << i;
    };
    // Bytes of 80 and more are negative here.
    const __m128i above = _mm_cmpgt_epi8(bytes, at_sign);
    bits.escapes |= mask(_mm_cmpeq_epi8(bytes, escape));
    bits.brackets |= mask(_mm_cmpeq_epi8(bytes, bracket));
    bits.parameters |= mask(_mm_andnot_si128(above, _mm_cmpgt_epi8(bytes, space)));
    bits.finals |= mask(_mm_andnot_si128(_mm_cmpeq_epi8(bytes, del), above));
  }
  return bits;
}
#else
Bits bits_of(const char* at) {
  Bits bits;
  for (unsigned i = 0; i < kBlock; i++) {
    bits.escapes |= uint64_t{at[i] == kEscape} << i;
    bits.brackets |= uint64_t{at[i] == '['} << i;
    bits.parameters |= uint64_t{is_parameter(at[i])} << i;
    bits.finals |= uint64_t{is_final(at[i])} << i;
  }
  return bits;
}
#endif

// Where the block before ended: in no sequence, behind the first byte of one, or in parameters.
enum class Inside { kNone, kBegun, kParameters };

// Which of the first `size` bytes of a block are in a sequence. What follows them is of another
// kind.
struct Cut {
  uint64_t bits = 0;
  size_t size = kBlock;
};

uint64_t first_bits(size_t count) {
  return count == kBlock ? ~uint64_t{0} : (uint64_t{1} << count) - 1;
}

Cut cut_of(const Bits& bits, Inside& inside) {
  const uint64_t carried = inside == Inside::kNone ? 0 : 1;
  const uint64_t is_last = bits.escapes & ~first_bits(kBlock - 1);
  uint64_t begins = bits.escapes & (bits.brackets >> 1U);
  const uint64_t others = bits.escapes & ~begins & ~is_last;
  const size_t size = others == 0 ? kBlock : static_cast<size_t>(std::countr_zero(others));
  begins &= first_bits(size);
  const uint64_t parameters = begins << 2U | (inside == Inside::kBegun ? carried << 1U : carried);
  const uint64_t sum = bits.parameters + parameters;
  const uint64_t ends = sum & ~bits.parameters;
  const bool goes_on = sum < parameters || begins >> (kBlock - 2) != 0;
  inside = goes_on ? Inside::kParameters : is_last != 0 ? Inside::kBegun : Inside::kNone;
  // From the begin of each to its end there is no other one: the differences do not overlap.
  return {(ends - begins - carried) | (ends & bits.finals) | is_last, size};
}

// A part of a text, and where what is no escape sequence in it is written: no more than it has.
struct Writer {
  std::string_view text;
  char* out = nullptr;
  size_t at = 0;
};

void keep(Writer& to, const Cut& cut) {
  const char* in = to.text.data() + to.at;
  to.at += cut.size;
  if (cut.bits == 0) {
    std::memcpy(to.out, in, kBlock);
    to.out += cut.size;
    return;
  }
  for (uint64_t kept = ~cut.bits & first_bits(cut.size); kept != 0;) {
    const auto begin = static_cast<size_t>(std::countr_zero(kept));
    const uint64_t behind = kept + (uint64_t{1} << begin);  // 0: to the block's end
    const size_t length = static_cast<size_t>(std::countr_zero(behind)) - begin;
    std::memcpy(to.out, in + begin, kWord);
    for (size_t i = kWord; i < length; i += kWord) std::memcpy(to.out + i, in + begin + i, kWord);
    to.out += length;
    kept &= behind;
  }
}

// As long as there is no other kind of sequence, and room to copy words.
void write_blocks(Writer& to) {
  Inside inside = Inside::kNone;
  while (to.text.size() - to.at >= kBlock + kWord) {
    if (inside == Inside::kBegun && to.text[to.at] != '[') break;
    const Cut cut = cut_of(bits_of(to.text.data() + to.at), inside);
    keep(to, cut);
    if (cut.size < kBlock) return;
  }
  if (inside == Inside::kBegun) to.at--;
  if (inside != Inside::kParameters) return;
  while (to.at < to.text.size() && is_parameter(to.text[to.at])) to.at++;
  if (to.at < to.text.size() && is_final(to.text[to.at])) to.at++;
}

size_t write_without_escapes(std::string_view text, char* out) {
  Writer to{text, out, 0};
  while (to.at < text.size()) {
    write_blocks(to);
    if (to.at < text.size() && text[to.at] == kEscape)
      to.at = after_escape(text, to.at);
    else if (to.at < text.size())
      *to.out++ = text[to.at++];
  }
  return static_cast<size_t>(to.out - out);
}

// No escape sequence goes on behind a line feed: where the parts of a text end.
constexpr size_t kPart = size_t{256} << 10;

std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = text.size() <= kPart ? text.npos : text.find('\n', kPart);
    parts.push_back(text.substr(0, end == text.npos ? end : end + 1));
    text.remove_prefix(parts.back().size());
  }
  return parts;
}

}  // namespace

bool has_escapes(std::string_view text) {
  std::atomic<bool> found = false;
  const size_t count = text.size() / kPart + 1;
  together(count, [&](size_t i) {
    const std::string_view part = text.substr(i * kPart, kPart);
    if (!found && !part.empty() && std::memchr(part.data(), kEscape, part.size())) found = true;
  });
  return found;
}

// Where a part goes is known when the one before it is read. They are begun in their order, so that
// the one that is waited for is being read; memory of which nothing comes to be is not touched.
Buffer without_escapes(std::string_view text) {
  constexpr size_t kUnknown = ~size_t{0};
  const std::vector<std::string_view> parts = parts_of(text);
  Buffer result{std::make_unique_for_overwrite<char[]>(text.size()), 0};
  std::vector<std::atomic<size_t>> begins(parts.size() + 1);
  for (std::atomic<size_t>& begin : begins) begin = kUnknown;
  begins[0] = 0;
  const auto place_of = [&](size_t i) {
    begins[i].wait(kUnknown);
    return result.bytes.get() + begins[i];
  };
  const auto end_at = [&](size_t i, size_t size) {
    begins[i + 1] = begins[i] + size;
    begins[i + 1].notify_one();
  };
  together(parts.size(), [&](size_t i) {
    constexpr size_t kMostKept = 2 * kPart;
    thread_local const std::unique_ptr<char[]> kept(new (std::nothrow) char[kMostKept]);
    if (!kept || parts[i].size() > kMostKept) {
      end_at(i, write_without_escapes(parts[i], place_of(i)));
      return;
    }
    const size_t size = write_without_escapes(parts[i], kept.get());
    char* place = place_of(i);
    end_at(i, size);
    std::memcpy(place, kept.get(), size);
  });
  result.size = begins.back();
  return result;
}

}  // namespace cohabit::explain
