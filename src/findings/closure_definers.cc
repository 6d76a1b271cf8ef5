#include "findings/closure_definers.h"

namespace cohabit {

std::vector<ImageId> ClosureDefiners::find_definers(ImageId image,
                                                    const std::vector<ImageId>& closure) const {
  std::vector<bool> inside(images_.size());
  for (const ImageId member : closure) inside[member] = true;
  const auto& references = images_[image].references;
  std::vector<ImageId> definers(references.size(), kNone);
  for (size_t slot = 0; slot < references.size(); slot++)
    for (uint32_t at = images_.first_definition(references[slot].name); at != kNone;
         at = images_.definition(at).next) {
      const ImageId definer = images_.definition(at).image;
      if (!inside[definer] || definer == definers[slot]) continue;
      definers[slot] = definers[slot] == kNone ? definer : kSeveral;
      if (definers[slot] == kSeveral) break;
    }
  return definers;
}

const std::vector<uint32_t>& ClosureDefiners::Closure::places_with_others(
    ImageId image, const std::shared_ptr<const sim::BoundReferences>& bound) {
  for (const Known& one : known_)
    if (one.bound == bound && one.count == bound->entries.size()) return one.places;
  Known& known = known_.emplace_back(Known{bound, bound->entries.size(), {}});
  for (uint32_t place = 0; place < known.count; place++) {
    const sim::BoundReferences::Entry& entry = bound->entries[place];
    const ImageId provider = bound->images[entry.provider];
    const ImageId definer = definers[entry.slot];
    if (entry.again || (provider != image && definer != kNone && definer != provider))
      known.places.push_back(place);
  }
  return known.places;
}

ClosureDefiners::Closure& ClosureDefiners::of(ImageId image, const std::vector<ImageId>& closure) {
  const auto [known, fresh] = known_.try_emplace(image);
  if (fresh || known->second.images != closure)
    known->second = Closure(closure, find_definers(image, closure));
  return known->second;
}

}  // namespace cohabit
