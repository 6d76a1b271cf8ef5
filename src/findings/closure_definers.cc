#include "findings/closure_definers.h"

namespace cohabit {

std::vector<ImageId> ClosureDefiners::find_definers(ImageId image,
                                                    const std::vector<ImageId>& closure) const {
  std::vector<bool> inside(images_.size());
  for (const ImageId member : closure) inside[member] = true;
  const auto& references = images_[image].references;
  std::vector<ImageId> definers(references.size(), kNone);
  for (size_t slot = 0; slot < references.size(); slot++) {
    if (!images_.has_several(references[slot].name)) continue;
    for (uint32_t at = images_.first_definition(references[slot].name); at != kNone;
         at = images_.definition(at).next) {
      const ImageId definer = images_.definition(at).image;
      if (!inside[definer] || definer == definers[slot]) continue;
      definers[slot] = definers[slot] == kNone ? definer : kSeveral;
      if (definers[slot] == kSeveral) break;
    }
  }
  return definers;
}

ClosureDefiners::Places ClosureDefiners::Closure::find_places(
    ImageId image, const sim::BoundReferences& bound) const {
  std::vector<uint32_t> places;
  for (uint32_t place = 0; place < bound.entries.size(); place++) {
    const sim::BoundReferences::Entry& entry = bound.entries[place];
    const ImageId definer = definers_[entry.slot];
    if (definer == kNone && !entry.again) continue;  // of forty, nearly all
    const ImageId provider = bound.images[entry.provider];
    if (entry.again || (provider != image && definer != provider)) places.push_back(place);
  }
  return std::make_shared<const std::vector<uint32_t>>(std::move(places));
}

ClosureDefiners::Places ClosureDefiners::Closure::places_with_others(
    ImageId image, const std::shared_ptr<const sim::BoundReferences>& bound) const {
  if (!bound->is_whole) return find_places(image, *bound);  // nobody repeats it
  const std::lock_guard lock(mutex_);
  for (const Known& one : known_)
    if (one.bound == bound) return one.places;
  if (known_.size() == kMostKnown) known_.pop_front();
  return known_.emplace_back(Known{bound, find_places(image, *bound)}).places;
}

std::shared_ptr<const ClosureDefiners::Closure> ClosureDefiners::of(
    ImageId image, const std::vector<ImageId>& closure) {
  const auto known_of = [&]() -> Known& {
    const std::lock_guard lock(mutex_);
    return known_[image];
  };
  Known& known = known_of();
  const std::lock_guard lock(known.mutex);
  const size_t now = images_.definition_count();
  if (!known.closure || !known.closure->is_of(closure, now))
    known.closure = std::make_shared<const Closure>(closure, find_definers(image, closure), now);
  return known.closure;
}

}  // namespace cohabit
