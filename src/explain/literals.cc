// The algorithm is Wu and Manber's (1994) with blocks of four bytes: a window of the length of the
// shortest word moves over the text; a table says, for the last four bytes in it, how far it can
// move without passing a word. In logs most blocks occur in no word, so that the window moves five
// bytes at a time. Each step waits for the table's answer to the one before; four windows that move
// over four parts of the text by turns do not wait for each other: 1.6 GB/s instead of 0.4.
#include "explain/literals.h"

#include <algorithm>
#include <cstring>

#include "base/eight_bytes.h"

namespace cohabit::explain {
namespace {

constexpr size_t kBlock = 4;
constexpr size_t kLast = Literals::kShortest - kBlock;  // of the window's last block
constexpr size_t kMostSteps = 8;                        // between two looks at the end of a part
static_assert(Literals::kMostShift == kLast + 1);
constexpr uint32_t kFold = 0x20202020;  // letters become lower case; the table allows for the rest

uint32_t hash_of(const char* block, unsigned bits) {
  uint32_t bytes = 0;
  std::memcpy(&bytes, block, kBlock);
  return ((bytes | kFold) * 2654435761U) >> (32 - bits);
}

bool same_eight(const char* text, const char* word) {
  return EightBytes::load(text).lower().bytes == EightBytes::load(word).bytes;
}

}  // namespace

Literals::Literals(std::vector<std::string> words) : words_(std::move(words)) {
  shifts_.fill(kMostShift);
  std::vector<std::vector<uint32_t>> buckets(size_t{1} << kHeadBits);
  for (uint32_t i = 0; i < words_.size(); i++) {
    add_shifts(words_[i], shifts_);
    const uint64_t head = EightBytes::load(words_[i].data()).bytes;
    hints_.set(hint_of(head));
    buckets[hash_of_head(head, kHeadBits)].push_back(i);
  }
  first_.reserve(buckets.size() + 1);
  for (const auto& bucket : buckets) {
    first_.push_back(static_cast<uint32_t>(entries_.size()));
    for (const uint32_t word : bucket)
      entries_.push_back({EightBytes::load(words_[word].data()).bytes, word});
  }
  first_.push_back(static_cast<uint32_t>(entries_.size()));
}

void Literals::add_shifts(const std::string& word, Shifts& shifts) {
  for (size_t at = 0; at <= kLast; at++) {
    uint8_t& shift = shifts[hash_of(word.data() + at, kBits)];
    const auto length = static_cast<uint8_t>(kLast - at);
    if (shift != kHit) shift = length == 0 ? kHit : std::min(shift, length);
  }
}

uint32_t Literals::hash_of_head(uint64_t head, unsigned bits) {
  constexpr uint64_t kFactor = 0x9E3779B97F4A7C15U;
  return static_cast<uint32_t>((head * kFactor) >> (64 - bits));
}

inline bool Literals::may_begin(std::string_view text, size_t at) const {
  return hints_[hint_of(EightBytes::load(text.data() + at).lower().bytes)];
}

inline bool Literals::begins(std::string_view text, size_t at, const Entry& entry,
                             uint64_t head) const {
  if (entry.head != head) return false;
  const std::string& wanted = words_[entry.word];
  const char* here = text.data() + at;
  if (text.size() - at < wanted.size()) return false;
  const size_t last = wanted.size() - 8;
  for (size_t i = 8; i < last; i += 8)
    if (!same_eight(here + i, wanted.data() + i)) return false;
  return same_eight(here + last, wanted.data() + last);
}

bool Literals::any_begins(std::string_view text, size_t at) const {
  const uint64_t head = EightBytes::load(text.data() + at).lower().bytes;
  const uint32_t hash = hash_of_head(head, kHeadBits);
  for (uint32_t i = first_[hash]; i < first_[hash + 1]; i++)
    if (begins(text, at, entries_[i], head)) return true;
  return false;
}

size_t Literals::find(std::string_view text, size_t from) const {
  for (size_t at = from; at + kShortest <= text.size();) {
    const uint8_t shift = shifts_[hash_of(text.data() + at + kLast, kBits)];
    if (shift == kHit && may_begin(text, at) && any_begins(text, at)) return at;
    at += shift & 0x7F;
  }
  return text.npos;
}

void Literals::words_at(std::string_view text, size_t at, std::vector<int>& words) const {
  const uint64_t head = EightBytes::load(text.data() + at).lower().bytes;
  const uint32_t hash = hash_of_head(head, kHeadBits);
  for (uint32_t i = first_[hash]; i < first_[hash + 1]; i++)
    if (begins(text, at, entries_[i], head)) words.push_back(static_cast<int>(entries_[i].word));
}

LiteralScan::LiteralScan(const Literals& literals, std::string_view text, size_t begin, size_t end)
    : literals_(literals), shifts_(literals.shifts_), text_(text), from_(begin), end_(end) {
  for (auto& candidates : candidates_) candidates.resize(kLane + 1);
}

// Without a branch: whether the place is kept depends on the text and cannot be predicted.
inline void LiteralScan::step(const char* block, Lane& lane) const {
  const uint8_t shift = shifts_[hash_of(block + lane.at, Literals::kBits)];
  *lane.next = lane.at;
  lane.next += shift >> 7;
  lane.at += shift & 0x7F;
}

// The lanes' places are kept in registers, which an array of them is not.
void LiteralScan::run_together(const char* block, std::array<Lane, kLanes>& lanes) const {
  Lane a = lanes[0], b = lanes[1], c = lanes[2], d = lanes[3];
  const auto has_room = [](const Lane& lane) {
    return lane.at + kMostSteps * Literals::kMostShift <= lane.end;
  };
  while (has_room(a) && has_room(b) && has_room(c) && has_room(d))
    for (size_t i = 0; i < kMostSteps; i++) {
      step(block, a);
      step(block, b);
      step(block, c);
      step(block, d);
    }
  lanes = {a, b, c, d};
}

const std::vector<size_t>& LiteralScan::next_block() {
  // A word begins at the latest here.
  const size_t last = std::min(
      end_, text_.size() < Literals::kShortest ? 0 : text_.size() - Literals::kShortest + 1);
  const auto offset = [&](size_t place) {
    return static_cast<uint32_t>(std::min(place, std::max(last, from_)) - from_);
  };
  const char* block = text_.data() + from_ + kLast;
  std::array<Lane, kLanes> lanes;
  for (size_t i = 0; i < kLanes; i++)
    lanes[i] = {offset(from_ + i * kLane), offset(from_ + (i + 1) * kLane), candidates_[i].data()};
  run_together(block, lanes);
  places_.clear();
  for (size_t i = 0; i < kLanes; i++) {
    while (lanes[i].at < lanes[i].end) step(block, lanes[i]);
    for (const uint32_t* at = candidates_[i].data(); at != lanes[i].next; at++)
      if (literals_.may_begin(text_, from_ + *at)) places_.push_back(from_ + *at);
  }
  from_ += kLanes * kLane;
  return places_;
}

}  // namespace cohabit::explain
