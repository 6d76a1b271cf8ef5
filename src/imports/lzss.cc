// The format has no header: eight flags in a byte, each for a plain byte (1) or a reference to
// earlier text (0). How much text there is stands in the code only, and where it ends as well. So
// each aligned place is tried: nearly all that are not the start end within a few bytes, at a
// reference to text before the start, and of the few others none has "__name__" in it. Then each
// aligned array of small numbers near by is tried as the lengths of the strings: the right one cuts
// the names out that every module has.
#include "imports/lzss.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace cohabit::python {
namespace {

constexpr uint64_t kArrayAlign = 16, kTextAlign = 8;
constexpr uint64_t kMaxText = 1 << 20;
constexpr uint64_t kMaxDistance = 1 << 17;  // of the lengths from the text
constexpr uint64_t kMaxWork = 32 << 20;     // tokens and lengths in all
constexpr uint64_t kMinStrings = 16;
constexpr uint32_t kMaxFirstLengths = 1 << 14;

class Unpacker {
 public:
  Unpacker(Bytes data, uint64_t begin, uint64_t& work) : data_(data), at_(begin), work_(work) {}

  // Up to the first impossible reference or the end of the data, so with some rubbish at the end.
  std::string run() {
    while (at_ < data_.size()) {
      for (uint32_t flags = byte() | 0xff00; flags & 0x100; flags >>= 1) {
        if (++work_ > kMaxWork || text_.size() > kMaxText || at_ >= data_.size()) return text_;
        if (flags & 1)
          text_ += static_cast<char>(byte());
        else if (!copy())
          return text_;
      }
    }
    return text_;
  }

 private:
  uint32_t byte() { return data_.read<uint8_t>(at_++).value_or(0); }

  bool copy() {
    const uint32_t low = byte(), high = byte();
    uint32_t distance = low, length = high;
    if ((low & 0x80) && !(high & 0x80)) {
      distance = 0x80 + (((high << 2) & 0x180) | (low & 0x7f));
      length = high & 0x1f;
    } else if (low & 0x80) {
      distance = 0x80 + ((high & 0x7f) << 7 | (low & 0x7f));
      length = byte();
    }
    length += 3;
    const uint64_t back = uint64_t{distance} + length;
    if (back > text_.size()) return false;
    text_.append(std::string(text_, text_.size() - back, length));
    return true;
  }

  Bytes data_;
  uint64_t at_;
  uint64_t& work_;
  std::string text_;
};

bool looks_like_lengths(Bytes data, uint64_t at) {
  uint64_t nonzero = 0;
  for (uint64_t i = 0; i < kMinStrings; i++) {
    const std::optional<uint32_t> length = data.read<uint32_t>(at + i * sizeof(uint32_t));
    if (!length || *length > kMaxFirstLengths) return false;
    if (*length != 0) nonzero++;
  }
  return nonzero > kMinStrings / 2;
}

// The pieces, if the lengths at this place are those of the text.
std::vector<std::string> cut(std::string_view text, Bytes data, uint64_t at, uint64_t& work) {
  std::vector<std::string> pieces;
  int known = 0;
  for (uint32_t before = 1; !text.empty() && work < kMaxWork; work++, at += sizeof(uint32_t)) {
    const uint32_t length = data.read<uint32_t>(at).value_or(0);
    if (length > text.size() || (length == 0 && before == 0)) break;
    const std::string_view piece = text.substr(0, length);
    if (piece == "__name__" || piece == "__main__" || piece == "__test__") known++;
    pieces.emplace_back(piece);
    text.remove_prefix(length);
    before = length;
  }
  if (known < 2) pieces.clear();
  return pieces;
}

std::vector<std::string> cut_by_any(std::string_view text, Bytes data, uint64_t first,
                                    uint64_t begin, uint64_t& work) {
  const uint64_t lowest = begin > kMaxDistance ? begin - kMaxDistance : 0;
  const uint64_t highest = std::min(data.size(), begin + kMaxDistance);
  for (uint64_t at = first + (lowest - std::min(lowest, first)) / kArrayAlign * kArrayAlign;
       at < highest && work < kMaxWork; at += kArrayAlign) {
    work++;
    if (!looks_like_lengths(data, at)) continue;
    std::vector<std::string> pieces = cut(text, data, at, work);
    if (!pieces.empty()) return pieces;
  }
  return {};
}

}  // namespace

std::vector<std::string> find_lzss_strings(Bytes data, uint64_t address) {
  uint64_t work = 0;
  const uint64_t first_array = (0 - address) % kArrayAlign;
  for (uint64_t begin = (0 - address) % kTextAlign; begin < data.size() && work < kMaxWork;
       begin += kTextAlign) {
    // The first flag is of a plain byte: there is nothing to refer to.
    if ((data.read<uint8_t>(begin).value_or(0) & 1) == 0) continue;
    const std::string text = Unpacker(data, begin, work).run();
    if (text.find("__name__") == text.npos) continue;
    std::vector<std::string> pieces = cut_by_any(text, data, first_array, begin, work);
    if (!pieces.empty()) return pieces;
  }
  return {};
}

}  // namespace cohabit::python
