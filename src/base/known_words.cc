#include "base/known_words.h"

#include <algorithm>
#include <utility>

namespace cohabit {

std::optional<KnownWords::Words> KnownWords::find(const File& file, const std::string& kind) {
  const std::lock_guard lock(mutex_);
  const auto known = known_.find({file, kind});
  if (known == known_.end()) return std::nullopt;
  known->second.is_asked = true;
  Unpacker unpacker(known->second.packed);
  Words words(unpacker.count());
  for (std::string& word : words) word = unpacker.text();
  return words;
}

void KnownWords::add(const File& file, const std::string& kind, const Words& words) {
  Packer packer;
  packer.number(words.size());
  for (const std::string& word : words) packer.text(word);
  const std::lock_guard lock(mutex_);
  const auto [known, is_new] = known_.try_emplace({file, kind});
  if (!is_new) return;
  known->second.own = packer.bytes();
  known->second.packed = known->second.own;
  has_new_ = true;
}

bool KnownWords::has_new() const {
  const std::lock_guard lock(mutex_);
  return has_new_;
}

void KnownWords::pack(Packer& packer, int64_t before, bool with_unasked) const {
  const std::lock_guard lock(mutex_);
  std::vector<const decltype(known_)::value_type*> packed;
  for (const auto& one : known_)
    if (one.first.first.changed < before && (one.second.is_asked || with_unasked))
      packed.push_back(&one);
  packer.number(packed.size());
  for (const auto* one : packed) {
    const File& file = one->first.first;
    for (const uint64_t number :
         {file.device, file.inode, file.size, static_cast<uint64_t>(file.modified),
          static_cast<uint64_t>(file.changed)})
      packer.number(number);
    packer.text(one->first.second);
    packer.text(one->second.packed);
  }
}

bool KnownWords::unpack(std::string_view text, std::shared_ptr<const void> owner) {
  const std::lock_guard lock(mutex_);
  Unpacker unpacker(text);
  std::map<Of, Known> known;
  for (size_t left = unpacker.count(); left > 0 && !unpacker.failed(); left--) {
    uint64_t numbers[5];
    for (uint64_t& number : numbers) number = unpacker.number();
    const auto [device, inode, size, modified, changed] = numbers;
    const File file{device, inode, size, static_cast<int64_t>(modified),
                    static_cast<int64_t>(changed)};
    std::string kind(unpacker.text());
    Known& one = known[{file, std::move(kind)}];
    one.packed = unpacker.text();
    one.is_asked = false;
  }
  if (!unpacker.is_whole()) return false;
  known_.merge(known);
  owners_.push_back(std::move(owner));
  return true;
}

}  // namespace cohabit
