#include "sim/binding_cache.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <utility>

namespace cohabit::sim {
namespace {

bool matters(const BindingCache::Relocation& relocation, ImageId image) {
  return image >= relocation.relevant.size() || relocation.relevant[image];
}

bool same_scope(const BindingCache::Relocation& relocation, const std::vector<ImageId>& scope) {
  size_t at = 0;
  for (const ImageId image : scope) {
    if (!matters(relocation, image)) continue;
    if (at == relocation.scope.size() || relocation.scope[at] != image) return false;
    at++;
  }
  return at == relocation.scope.size();
}

void pack_numbers(Packer& packer, const std::vector<uint32_t>& numbers) {
  packer.number(numbers.size());
  for (const uint32_t number : numbers) packer.number(number);
}

std::vector<uint32_t> unpack_numbers(Unpacker& unpacker) {
  std::vector<uint32_t> numbers(unpacker.count());
  for (uint32_t& number : numbers) number = static_cast<uint32_t>(unpacker.number());
  return numbers;
}

void pack_marks(Packer& packer, const std::vector<bool>& marks) {
  std::string text(marks.size(), '0');
  for (size_t i = 0; i < marks.size(); i++)
    if (marks[i]) text[i] = '1';
  packer.text(text);
}

std::vector<bool> unpack_marks(Unpacker& unpacker) {
  const std::string_view text = unpacker.text();
  std::vector<bool> marks(text.size());
  for (size_t i = 0; i < text.size(); i++) marks[i] = text[i] == '1';
  return marks;
}

BindingCache::Relocation take_one(Unpacker& unpacker, SectionReader& sections) {
  BindingCache::Relocation one;
  one.lazy = unpacker.number() != 0;
  one.relevant = unpack_marks(unpacker);
  one.scope = unpack_numbers(unpacker);
  one.missing = unpack_numbers(unpacker);
  auto bound = std::make_shared<BoundReferences>();
  bound->images = unpack_numbers(unpacker);
  bound->first_places = unpack_numbers(unpacker);
  bound->again = unpack_numbers(unpacker);
  bound->entries.view(sections.next<BoundReferences::Entry>());
  bound->is_whole = true;
  one.bound = std::move(bound);
  return one;
}

// Whether its bytes are values of the type at all.
bool is_entry(const BoundReferences::Entry& entry) {
  uint8_t bytes[sizeof entry];
  std::memcpy(bytes, &entry, sizeof bytes);
  return bytes[offsetof(BoundReferences::Entry, kind)] <= static_cast<uint8_t>(RefKind::kCopy) &&
         bytes[offsetof(BoundReferences::Entry, again)] <= 1;
}

// Whether every number leads to where there is something.
bool is_consistent(const Images& images, ImageId image, const BindingCache::Relocation& one) {
  const BoundReferences& bound = *one.bound;
  const size_t slots = images[image].references.size(), places = bound.entries.size();
  const auto are_below = [](const std::vector<uint32_t>& numbers, size_t end) {
    return std::all_of(numbers.begin(), numbers.end(),
                       [&](uint32_t number) { return number < end; });
  };
  const auto rise = [](const std::vector<uint32_t>& numbers) {
    return std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) ==
           numbers.end();
  };
  if (one.relevant.size() > images.size() || !are_below(one.scope, images.size()) ||
      !are_below(one.missing, slots) || !rise(one.missing) ||
      bound.first_places.size() != bound.images.size() || !are_below(bound.again, places) ||
      !rise(bound.again))
    return false;
  // Whoever provides something stands in the scope.
  for (size_t i = 0; i < bound.images.size(); i++) {
    if (bound.first_places[i] == kNone
            ? bound.images[i] >= images.size()
            : bound.first_places[i] >= places ||
                  std::count(one.scope.begin(), one.scope.end(), bound.images[i]) == 0)
      return false;
  }
  size_t again = 0, next_slot = 0;
  for (const BoundReferences::Entry& entry : bound.entries) {
    if (!is_entry(entry) || entry.slot >= slots || entry.slot < next_slot ||
        entry.provider >= bound.images.size())
      return false;
    next_slot = size_t{entry.slot} + 1;
    again += entry.again;
  }
  return again == bound.again.size() &&
         std::all_of(bound.again.begin(), bound.again.end(),
                     [&](uint32_t place) { return bound.entries[place].again; });
}

}  // namespace

const BindingCache::Relocation* BindingCache::find(ImageId image, const std::vector<ImageId>& scope,
                                                   bool lazy) const {
  const auto found = relocations_.find(image);
  if (found == relocations_.end()) return nullptr;
  for (const Relocation& relocation : found->second)
    if (relocation.lazy == lazy && same_scope(relocation, scope)) return &relocation;
  return nullptr;
}

void BindingCache::add(ImageId image, const std::vector<ImageId>& scope, Relocation relocation) {
  for (const ImageId member : scope)
    if (matters(relocation, member)) relocation.scope.push_back(member);
  size_ += relocation.bound->entries.size();
  auto& list = relocations_[image];
  if (list.size() == kMostPerImage) {
    size_ -= list.front().bound->entries.size();
    list.erase(list.begin());
  }
  list.push_back(std::move(relocation));
}

void BindingCache::give(Packer& packer, SectionWriter& sections) const {
  packer.number(relocations_.size());
  for (const auto& [image, list] : relocations_) {
    packer.number(image);
    packer.number(list.size());
    for (const Relocation& one : list) {
      packer.number(one.lazy ? 1 : 0);
      pack_marks(packer, one.relevant);
      pack_numbers(packer, one.scope);
      pack_numbers(packer, one.missing);
      pack_numbers(packer, one.bound->images);
      pack_numbers(packer, one.bound->first_places);
      pack_numbers(packer, one.bound->again);
      sections.add(one.bound->entries.span());
    }
  }
}

bool BindingCache::take(const Images& images, Unpacker& unpacker, SectionReader& sections) {
  for (size_t left = unpacker.count(); left > 0; left--) {
    const auto image = static_cast<ImageId>(unpacker.number());
    const size_t count = unpacker.count();
    bool fit = !unpacker.failed() && image < images.size() && images[image].indexed &&
               count <= kMostPerImage && !relocations_.contains(image);
    auto& list = relocations_[image];
    for (size_t i = 0; i < count && fit; i++) {
      list.push_back(take_one(unpacker, sections));
      size_ += list.back().bound->entries.size();
      fit = !unpacker.failed() && !sections.failed() &&
            (sections.is_known() || is_consistent(images, image, list.back()));
    }
    if (fit) continue;
    relocations_.clear();
    size_ = 0;
    return false;
  }
  return !unpacker.failed();
}

}  // namespace cohabit::sim
