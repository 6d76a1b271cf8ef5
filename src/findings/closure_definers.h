// Who of an object's dependency closure defines the names that it refers to.
//
// 95 % of references have one definer there, and that is whom they are bound to: no capture. It is
// a matter of the files, so it is remembered for the next process that has the same closure.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "sim/bindings.h"

namespace cohabit {

class ClosureDefiners {
 public:
  static constexpr ImageId kSeveral = kNone - 1;
  struct Own {
    ImageId image = kNone;
    uint32_t symbol = 0;
  };
  struct Closure {
    Closure() = default;
    Closure(std::vector<ImageId> in_order, std::vector<ImageId> by_slot, size_t all_definitions)
        : images(std::move(in_order)),
          definers(std::move(by_slot)),
          definition_count(all_definitions) {}

    std::vector<ImageId> images;  // in lookup order
    // By slot of references: one image, kNone or kSeveral; kNone also where there is no other
    // definition than the one that was bound.
    std::vector<ImageId> definers;
    size_t definition_count = 0;             // of the images when that was so
    std::unordered_map<uint32_t, Own> owns;  // by slot: what a lookup in the closure gave

    // The places, rising, at which somebody else may define what was bound: of what the image's
    // references were bound to, once for all processes that repeat it. What each of these looks up
    // again is among them. Stays until the next call.
    const std::vector<uint32_t>& places_with_others(
        ImageId image, const std::shared_ptr<const sim::BoundReferences>& bound);

   private:
    static constexpr size_t kMostKnown = 16;
    struct Known {
      std::shared_ptr<const sim::BoundReferences> bound;
      std::vector<uint32_t> places;
    };
    void find_places(ImageId image, const sim::BoundReferences& bound,
                     std::vector<uint32_t>& places) const;
    std::deque<Known> known_;
    std::vector<uint32_t> unshared_;  // of a list that nobody repeats
  };

  explicit ClosureDefiners(const Images& images) : images_(images) {}

  // All images of the closure are in a process: indexed. What is returned stays until the next call
  // for this image.
  Closure& of(ImageId image, const std::vector<ImageId>& closure);

 private:
  std::vector<ImageId> find_definers(ImageId image, const std::vector<ImageId>& closure) const;

  const Images& images_;
  std::unordered_map<ImageId, Closure> known_;
};

}  // namespace cohabit
