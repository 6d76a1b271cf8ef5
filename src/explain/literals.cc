// The algorithm is Wu and Manber's (1994) with blocks of three bytes: a window of the length of the
// shortest word moves over the text; a table says, for the last three bytes in it, how far it can
// move without passing a word. In logs most blocks occur in no word, so that the window moves six
// bytes at a time: 1.5 GB/s where an automaton over the same words makes 0.4.
#include "explain/literals.h"

#include <algorithm>
#include <cstring>

namespace cohabit::explain {
namespace {

constexpr size_t kBlock = 3;
constexpr uint32_t kFold = 0x202020;  // letters become lower case; the table allows for the rest

uint32_t hash_of(const char* block, unsigned bits) {
  uint32_t bytes = 0;
  std::memcpy(&bytes, block, kBlock);
  return ((bytes | kFold) * 2654435761U) >> (32 - bits);
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

}  // namespace

Literals::Literals(std::vector<std::string> words) : words_(std::move(words)) {
  constexpr size_t kLast = kShortest - kBlock;
  shift_.fill(kLast + 1);
  std::vector<std::vector<uint32_t>> buckets(shift_.size());
  for (uint32_t i = 0; i < words_.size(); i++) {
    for (size_t at = 0; at <= kLast; at++) {
      uint8_t& shift = shift_[hash_of(words_[i].data() + at, kBits)];
      shift = std::min(shift, static_cast<uint8_t>(kLast - at));
    }
    buckets[hash_of(words_[i].data() + kLast, kBits)].push_back(i);
  }
  first_.reserve(buckets.size() + 1);
  for (const auto& bucket : buckets) {
    first_.push_back(static_cast<uint32_t>(order_.size()));
    order_.insert(order_.end(), bucket.begin(), bucket.end());
  }
  first_.push_back(static_cast<uint32_t>(order_.size()));
}

bool Literals::begins(std::string_view text, size_t at, uint32_t word) const {
  const std::string& wanted = words_[word];
  if (text.size() - at < wanted.size()) return false;
  for (size_t i = 0; i < wanted.size(); i++)
    if (lower(text[at + i]) != wanted[i]) return false;
  return true;
}

size_t Literals::find(std::string_view text, size_t from) const {
  constexpr size_t kLast = kShortest - kBlock;
  for (size_t at = from; at + kShortest <= text.size();) {
    const uint32_t hash = hash_of(text.data() + at + kLast, kBits);
    if (const uint8_t shift = shift_[hash]) {
      at += shift;
      continue;
    }
    for (uint32_t i = first_[hash]; i < first_[hash + 1]; i++)
      if (begins(text, at, order_[i])) return at;
    at++;
  }
  return text.npos;
}

void Literals::words_at(std::string_view text, size_t at, std::vector<int>& words) const {
  const uint32_t hash = hash_of(text.data() + at + kShortest - kBlock, kBits);
  for (uint32_t i = first_[hash]; i < first_[hash + 1]; i++)
    if (begins(text, at, order_[i])) words.push_back(static_cast<int>(order_[i]));
}

}  // namespace cohabit::explain
