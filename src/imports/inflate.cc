// A small inflate, after the description in RFC 1951: some hundred kilobytes per environment are
// unpacked, and most candidates are no zlib data at all and end at the first block. Codes are
// decoded bit by bit from the count of codes of each length, which needs no tables and cannot
// index outside of what was counted.
#include "imports/inflate.h"

#include <array>
#include <span>

namespace cohabit::python {
namespace {

constexpr int kMaxBits = 15;
constexpr int kLiterals = 286, kDistances = 30;

class BitReader {
 public:
  explicit BitReader(Bytes data) : data_(data) {}

  // The next `count` bits, low bit first; after the end of the data all is zero and ok() is false.
  uint32_t take(int count) {
    while (held_ < count) {
      const std::optional<uint8_t> byte = data_.read<uint8_t>(at_++);
      ok_ = ok_ && byte;
      bits_ |= static_cast<uint64_t>(byte.value_or(0)) << held_;
      held_ += 8;
    }
    const auto result = static_cast<uint32_t>(bits_ & ((uint64_t{1} << count) - 1));
    bits_ >>= count;
    held_ -= count;
    return result;
  }
  void skip_to_byte() {
    bits_ = 0;
    held_ = 0;
  }
  bool ok() const { return ok_; }
  uint64_t position() const { return at_; }

 private:
  Bytes data_;
  uint64_t at_ = 0;
  uint64_t bits_ = 0;
  int held_ = 0;
  bool ok_ = true;
};

// A canonical Huffman code.
class Code {
 public:
  // False if the lengths promise more codes than there are.
  bool build(std::span<const uint8_t> lengths) {
    counts_.fill(0);
    for (const uint8_t bits : lengths) counts_[bits]++;
    counts_[0] = 0;
    int left = 1;
    for (int bits = 1; bits <= kMaxBits; bits++) {
      left = left * 2 - counts_[bits];
      if (left < 0) return false;
    }
    std::array<uint16_t, kMaxBits + 2> offsets{};
    for (int bits = 1; bits <= kMaxBits; bits++)
      offsets[bits + 1] = static_cast<uint16_t>(offsets[bits] + counts_[bits]);
    for (size_t i = 0; i < lengths.size(); i++)
      if (lengths[i] != 0) symbols_[offsets[lengths[i]]++] = static_cast<uint16_t>(i);
    return true;
  }

  int decode(BitReader& in) const {  // -1: no such code
    int code = 0, first = 0, index = 0;
    for (int bits = 1; bits <= kMaxBits; bits++) {
      code |= static_cast<int>(in.take(1));
      const int count = counts_[bits];
      if (code - count < first) return symbols_[index + (code - first)];
      index += count;
      first = (first + count) << 1;
      code <<= 1;
    }
    return -1;
  }

 private:
  std::array<uint16_t, kMaxBits + 1> counts_{};
  std::array<uint16_t, 288> symbols_{};
};

class Inflater {
 public:
  Inflater(Bytes data, uint64_t limit) : in_(data), limit_(limit) {}

  bool run() {
    while (true) {
      const bool last = in_.take(1) != 0;
      const uint32_t type = in_.take(2);
      const bool good = type == 0 ? stored() : type == 1 ? fixed() : type == 2 ? dynamic() : false;
      if (!good || !in_.ok()) return false;
      if (last) return true;
    }
  }
  std::string& text() { return text_; }
  uint64_t used() const { return in_.position(); }

 private:
  bool stored() {
    in_.skip_to_byte();
    const uint32_t length = in_.take(16), complement = in_.take(16);
    if ((length ^ 0xffff) != complement || text_.size() + length > limit_) return false;
    for (uint32_t i = 0; i < length && in_.ok(); i++) text_ += static_cast<char>(in_.take(8));
    return true;
  }

  bool fixed() {
    std::array<uint8_t, 318> lengths{};
    const std::span<const uint8_t> all(lengths);
    for (size_t i = 0; i < 288; i++)
      lengths[i] = static_cast<uint8_t>(i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8);
    for (size_t i = 288; i < 318; i++) lengths[i] = 5;
    Code literals, distances;
    return literals.build(all.first(288)) && distances.build(all.last(30)) &&
           codes(literals, distances);
  }

  bool dynamic() {
    constexpr std::array<uint8_t, 19> kOrder = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                11, 4,  12, 3, 13, 2, 14, 1, 15};
    const size_t literal_count = in_.take(5) + 257, distance_count = in_.take(5) + 1;
    const size_t order_count = in_.take(4) + 4;
    if (literal_count > kLiterals || distance_count > kDistances) return false;
    std::array<uint8_t, kLiterals + kDistances> lengths{};
    const std::span<const uint8_t> all(lengths);
    for (size_t i = 0; i < order_count; i++) lengths[kOrder[i]] = static_cast<uint8_t>(in_.take(3));
    Code of_lengths;
    if (!of_lengths.build(all.first(19))) return false;
    lengths.fill(0);
    for (size_t i = 0; i < literal_count + distance_count;) {
      const int symbol = of_lengths.decode(in_);
      if (symbol < 0 || !in_.ok()) return false;
      if (symbol < 16) {
        lengths[i++] = static_cast<uint8_t>(symbol);
        continue;
      }
      if (symbol == 16 && i == 0) return false;
      const uint8_t repeated = symbol == 16 ? lengths[i - 1] : 0;
      size_t times = symbol == 16   ? in_.take(2) + 3
                     : symbol == 17 ? in_.take(3) + 3
                                    : in_.take(7) + 11;
      if (i + times > literal_count + distance_count) return false;
      while (times-- > 0) lengths[i++] = repeated;
    }
    Code literals, distances;
    return literals.build(all.first(literal_count)) &&
           distances.build(all.subspan(literal_count, distance_count)) &&
           codes(literals, distances);
  }

  bool codes(const Code& literals, const Code& distances) {
    while (in_.ok()) {
      const int symbol = literals.decode(in_);
      if (symbol < 0 || symbol >= kLiterals) return false;
      if (symbol == 256) return true;
      if (symbol < 256) {
        if (text_.size() >= limit_) return false;
        text_ += static_cast<char>(symbol);
      } else if (!copy(symbol - 257, distances)) {
        return false;
      }
    }
    return false;
  }

  // The length's extra bits, the distance's code and its extra bits; then that much is repeated.
  bool copy(int length_symbol, const Code& distances) {
    constexpr std::array<uint16_t, 29> kLength = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                                  15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                                  67, 83, 99, 115, 131, 163, 195, 227, 258};
    const int length_bits = length_symbol < 8 || length_symbol == 28 ? 0 : length_symbol / 4 - 1;
    const size_t length = kLength[static_cast<size_t>(length_symbol)] + in_.take(length_bits);
    const int symbol = distances.decode(in_);
    if (symbol < 0 || symbol >= kDistances) return false;
    const int distance_bits = symbol < 4 ? 0 : symbol / 2 - 1;
    const size_t base =
        symbol < 4 ? symbol + 1 : (size_t{2} + (symbol & 1)) * (size_t{1} << distance_bits) + 1;
    const size_t distance = base + in_.take(distance_bits);
    if (distance > text_.size() || text_.size() + length > limit_) return false;
    for (size_t i = 0; i < length; i++) text_ += text_[text_.size() - distance];
    return true;
  }

  BitReader in_;
  const uint64_t limit_;
  std::string text_;
};

constexpr uint64_t kHeader = 2, kChecksum = 4;

uint32_t adler32(std::string_view text) {
  uint32_t a = 1, b = 0;
  for (const char c : text) {
    a = (a + static_cast<uint8_t>(c)) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

}  // namespace

std::optional<Inflated> inflate_zlib(Bytes data, uint64_t limit) {
  const uint32_t method = data.read<uint8_t>(0).value_or(0);
  const uint32_t flags = data.read<uint8_t>(1).value_or(0);
  const bool is_zlib = (method & 15) == 8 && method >> 4 <= 7 && (method * 256 + flags) % 31 == 0;
  if (!is_zlib || (flags & 0x20) != 0) return std::nullopt;
  Inflater inflater(data.from(kHeader), limit);
  if (!inflater.run()) return std::nullopt;
  uint32_t checksum = 0;
  for (uint64_t i = 0; i < kChecksum; i++) {
    const auto byte = data.read<uint8_t>(kHeader + inflater.used() + i);
    if (!byte) return std::nullopt;
    checksum = checksum << 8 | *byte;
  }
  if (checksum != adler32(inflater.text())) return std::nullopt;
  return Inflated{std::move(inflater.text()), kHeader + inflater.used() + kChecksum};
}

}  // namespace cohabit::python
