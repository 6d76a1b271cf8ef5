// Bindings of earlier simulations over the same files.
//
// What an object's references bind to depends only on which of the images in its scope define any
// of the names it refers to, and in which order those stand. So a relocation that meets the same
// relevant images in the same order as before is a copy of the earlier result. Left out, because
// they depend on more: unique symbols and static TLS, which are always looked up again.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "world/images.h"

namespace cohabit::sim {

class SpareBindings;

class BindingCache {
 public:
  BindingCache();
  struct Entry {
    uint32_t slot;        // in the image's references
    ImageId provider;     // kNone: look it up again
    uint32_t definition;  // symbol in the provider
  };
  struct Relocation {
    std::vector<ImageId> scope;  // relevant images, in lookup order
    std::vector<bool> relevant;  // by image; those indexed later are not known
    bool lazy = false;
    std::vector<Entry> entries;
    std::vector<uint32_t> missing;  // slots of weak references without definition
  };

  // The earlier relocation of `image` whose relevant scope equals that of `scope`; null if none.
  const Relocation* find(ImageId image, const std::vector<ImageId>& scope, bool lazy) const;
  void add(ImageId image, const std::vector<ImageId>& scope, Relocation relocation);
  const std::shared_ptr<SpareBindings>& spare() const { return spare_; }

 private:
  static constexpr size_t kMostPerImage = 16;
  std::shared_ptr<SpareBindings> spare_;
  std::unordered_map<ImageId, std::vector<Relocation>> relocations_;
};

}  // namespace cohabit::sim
