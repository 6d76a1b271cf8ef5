// Who of an object's dependency closure defines the names that it refers to, where more than one
// does.
//
// 95 % of references have one definer there, and that is whom they are bound to: no capture. What
// is left is a matter of the files, so it is remembered for all processes that have the same
// closure, and shared by those who judge them at the same time.
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
  struct Definition {
    ImageId image = kNone;
    uint32_t symbol = 0;
    bool operator==(const Definition&) const = default;
  };

  // What a definition and that of the own closure are to each other, whoever loads them.
  enum class Kinship : uint8_t {
    kUnique,    // made to be one in the process
    kWeak,      // vague linkage: templates and inline functions, that every library may carry
    kTypeInfo,  // compared by name
    kOther,
  };

  // A reference whose name has several definitions, of which one at least is in the closure.
  struct Contested {
    uint32_t slot;
    uint32_t reference;  // its symbol
    NameId name;
    ImageId definer;  // in the closure: one image, or kSeveral
    // What was found out so far.
    bool has_own = false;
    Definition own{};    // what a lookup in the closure gives
    Definition given{};  // which was compared with it last
    Kinship kinship = Kinship::kOther;
  };

  // A place of a relocation (sim::BoundReferences) at which such a reference was bound.
  struct Place {
    uint32_t place;
    uint32_t contested;   // index
    uint32_t again;       // index into BoundReferences::again; kNone: is not one of these
    uint32_t definition;  // where it is none
    uint16_t provider;
  };

  // Of one image.
  class Closure {
   public:
    Closure(ImageId image, std::vector<ImageId> in_order, size_t definition_count)
        : image_(image), images_(std::move(in_order)), definition_count_(definition_count) {}

    bool is_of(const std::vector<ImageId>& images, size_t definition_count) const {
      return definition_count_ == definition_count && images_ == images;
    }

    // To be held while what follows is used.
    std::mutex mutex;
    std::vector<Contested> contested;  // slots rising
    // Where somebody else may define what was bound, rising; once for all processes that repeat the
    // relocation. Stays until the next call.
    const std::vector<Place>& places(const std::shared_ptr<const sim::BoundReferences>& bound);

   private:
    friend class ClosureDefiners;
    static constexpr size_t kMostKnown = 16;
    struct Known {
      std::shared_ptr<const sim::BoundReferences> bound;
      std::vector<Place> places;
    };
    void find_places(const sim::BoundReferences& bound, std::vector<Place>& places) const;
    // Of lazy bindings, which come as they are called for.
    void find_unordered_places(const sim::BoundReferences& bound, std::vector<Place>& places) const;
    void add_place(const sim::BoundReferences& bound, uint32_t place, uint32_t at,
                   std::vector<Place>& places) const;

    const ImageId image_;
    const std::vector<ImageId> images_;  // in lookup order
    const size_t definition_count_;      // of all images when that was so
    std::deque<Known> known_;
    std::vector<Place> unshared_;  // of a list that nobody repeats
  };

  explicit ClosureDefiners(const Images& images) : images_(images) {}

  // On any thread. `closure`: in lookup order; all its images are in a process: indexed.
  std::shared_ptr<Closure> of(ImageId image, const std::vector<ImageId>& closure);

 private:
  struct Known {
    std::mutex mutex;  // held while it is worked out, which another judge then need not
    std::shared_ptr<Closure> closure;
  };
  void find_definers(Closure& closure) const;

  const Images& images_;
  std::mutex mutex_;  // of the table
  std::unordered_map<ImageId, Known> known_;
};

}  // namespace cohabit
