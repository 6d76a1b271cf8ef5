#include "findings/closure_definers.h"

#include <algorithm>

namespace cohabit {

void ClosureDefiners::find_definers(Closure& closure) const {
  std::vector<bool> inside(images_.size());
  for (const ImageId member : closure.images_) inside[member] = true;
  const auto& references = images_[closure.image_].references;
  for (uint32_t slot = 0; slot < references.size(); slot++) {
    if (!images_.has_several(references[slot].name)) continue;
    ImageId only = kNone;
    for (uint32_t at = images_.first_definition(references[slot].name); at != kNone;
         at = images_.definition(at).next) {
      const ImageId definer = images_.definition(at).image;
      if (!inside[definer] || definer == only) continue;
      only = only == kNone ? definer : kSeveral;
      if (only == kSeveral) break;
    }
    if (only != kNone)
      closure.contested.push_back({slot, references[slot].symbol, references[slot].name, only});
  }
}

void ClosureDefiners::Closure::add_place(const sim::BoundReferences& bound, uint32_t place,
                                         uint32_t at, std::vector<Place>& places) const {
  const sim::BoundReferences::Entry& entry = bound.entries[place];
  const ImageId provider = bound.images[entry.provider];
  if (!entry.again && (provider == image_ || contested[at].definer == provider)) return;
  const auto again = std::lower_bound(bound.again.begin(), bound.again.end(), place);
  const auto number = static_cast<uint32_t>(again - bound.again.begin());
  places.push_back({place, at, entry.again ? number : kNone, entry.definition, entry.provider});
}

// A relocation binds slot by slot, so one of forty is found among all by halving.
void ClosureDefiners::Closure::find_places(const sim::BoundReferences& bound,
                                           std::vector<Place>& places) const {
  const sim::BoundReferences::Entry* from = bound.entries.begin();
  for (uint32_t at = 0; at < contested.size(); at++) {
    const uint32_t slot = contested[at].slot;
    // The next is near: steps that double, then between the last two.
    size_t step = 1;
    const auto left = [&] { return static_cast<size_t>(bound.entries.end() - from); };
    while (step < left() && from[step].slot < slot) {
      from += step;
      step *= 2;
    }
    from = std::lower_bound(from, from + std::min(step + 1, left()), slot,
                            [](const sim::BoundReferences::Entry& entry, uint32_t wanted) {
                              return entry.slot < wanted;
                            });
    if (from == bound.entries.end()) return;
    if (from->slot == slot)
      add_place(bound, static_cast<uint32_t>(from - bound.entries.begin()), at, places);
  }
}

void ClosureDefiners::Closure::find_unordered_places(const sim::BoundReferences& bound,
                                                     std::vector<Place>& places) const {
  for (uint32_t place = 0; place < bound.entries.size(); place++) {
    const auto at =
        std::lower_bound(contested.begin(), contested.end(), bound.entries[place].slot,
                         [](const Contested& name, uint32_t wanted) { return name.slot < wanted; });
    if (at != contested.end() && at->slot == bound.entries[place].slot)
      add_place(bound, place, static_cast<uint32_t>(at - contested.begin()), places);
  }
}

const std::vector<ClosureDefiners::Place>& ClosureDefiners::Closure::places(
    const std::shared_ptr<const sim::BoundReferences>& bound) {
  if (!bound->is_whole) {
    unshared_.clear();
    find_unordered_places(*bound, unshared_);
    return unshared_;
  }
  for (const Known& one : known_)
    if (one.bound == bound) return one.places;
  if (known_.size() == kMostKnown) known_.pop_front();
  Known& known = known_.emplace_back(Known{bound, {}});
  find_places(*bound, known.places);
  return known.places;
}

std::shared_ptr<ClosureDefiners::Closure> ClosureDefiners::of(ImageId image,
                                                              const std::vector<ImageId>& closure) {
  const auto known_of = [&]() -> Known& {
    const std::lock_guard lock(mutex_);
    return known_[image];
  };
  Known& known = known_of();
  const std::lock_guard lock(known.mutex);
  const size_t now = images_.definition_count();
  if (!known.closure || !known.closure->is_of(closure, now)) {
    known.closure = std::make_shared<Closure>(image, closure, now);
    find_definers(*known.closure);
  }
  return known.closure;
}

}  // namespace cohabit
