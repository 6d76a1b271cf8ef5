// Who of an object's dependency closure defines the names that it refers to.
//
// 95 % of references have one definer there, and that is whom they are bound to: no capture. It is
// a matter of the files, so it is remembered for all processes that have the same closure, and
// shared by those who judge them at the same time.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "sim/bindings.h"

namespace cohabit {

class ClosureDefiners {
 public:
  static constexpr ImageId kSeveral = kNone - 1;
  using Places = std::shared_ptr<const std::vector<uint32_t>>;

  class Closure {
   public:
    Closure(std::vector<ImageId> in_order, std::vector<ImageId> by_slot, size_t definition_count)
        : images_(std::move(in_order)),
          definers_(std::move(by_slot)),
          definition_count_(definition_count) {}

    // By slot of references: one image, kNone or kSeveral; kNone also where there is no other
    // definition than the one that was bound.
    ImageId definer(uint32_t slot) const { return definers_[slot]; }
    // The places, rising, at which somebody else may define what was bound: of what the image's
    // references were bound to, once for all processes that repeat it. What each of these looks up
    // again is among them.
    Places places_with_others(ImageId image,
                              const std::shared_ptr<const sim::BoundReferences>& bound) const;
    bool is_of(const std::vector<ImageId>& images, size_t definition_count) const {
      return definition_count_ == definition_count && images_ == images;
    }

   private:
    static constexpr size_t kMostKnown = 16;
    struct Known {
      std::shared_ptr<const sim::BoundReferences> bound;
      Places places;
    };
    Places find_places(ImageId image, const sim::BoundReferences& bound) const;

    const std::vector<ImageId> images_;  // in lookup order
    const std::vector<ImageId> definers_;
    const size_t definition_count_;  // of the images when that was so
    mutable std::mutex mutex_;       // of what follows
    mutable std::deque<Known> known_;
  };

  explicit ClosureDefiners(const Images& images) : images_(images) {}

  // On any thread. `closure`: in lookup order; all its images are in a process: indexed.
  std::shared_ptr<const Closure> of(ImageId image, const std::vector<ImageId>& closure);

 private:
  struct Known {
    std::mutex mutex;  // held while it is worked out, which another judge then need not
    std::shared_ptr<const Closure> closure;
  };
  std::vector<ImageId> find_definers(ImageId image, const std::vector<ImageId>& closure) const;

  const Images& images_;
  std::mutex mutex_;  // of the table
  std::unordered_map<ImageId, Known> known_;
};

// What lookups in an image's closure gave; of one judge.
struct OwnProviders {
  struct Own {
    ImageId image = kNone;
    uint32_t symbol = 0;
  };
  std::shared_ptr<const ClosureDefiners::Closure> closure;
  std::unordered_map<uint32_t, Own> by_slot;
};

}  // namespace cohabit
