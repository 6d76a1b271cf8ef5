// Places in bytes that a look at a few neighbours tells, found a block at a time: a compiler makes
// instructions for many bytes at once of the test, and whole blocks without any are passed by.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace cohabit {

// use(i) for each i in [begin, end) with test(&text[i]), rising, until it returns false. test:
// without branches, by `&` and `|`; whatever it looks at has to be inside.
template <class Test, class Use>
void each_place(std::string_view text, size_t begin, size_t end, const Test& test, const Use& use) {
  static_assert(std::endian::native == std::endian::little);
  constexpr size_t kBlock = 64, kWord = 8;
  const char* data = text.data();
  size_t at = begin;
  for (; at < end && end - at >= kBlock; at += kBlock) {
    uint8_t found[kBlock];
    for (size_t i = 0; i < kBlock; i++) found[i] = test(data + at + i) ? 1 : 0;
    for (size_t i = 0; i < kBlock; i += kWord) {
      uint64_t word = 0;
      std::memcpy(&word, found + i, kWord);
      for (; word != 0; word &= word - 1)
        if (!use(at + i + static_cast<size_t>(std::countr_zero(word)) / kWord)) return;
    }
  }
  for (; at < end; at++)
    if (test(data + at) && !use(at)) return;
}

}  // namespace cohabit
