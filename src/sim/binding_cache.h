// Bindings of earlier simulations over the same files.
//
// What an object's references bind to depends only on which of the images in its scope define any
// of the names it refers to, and in which order those stand. So a relocation that meets the same
// relevant images in the same order as before has the same result. Left out, because
// they depend on more: unique symbols, static TLS, copies, and versions that the provider has not,
// which are always looked up again.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/packed.h"
#include "base/sections.h"
#include "sim/bindings.h"

namespace cohabit::sim {

class BindingCache {
 public:
  struct Relocation {
    std::vector<ImageId> scope;  // relevant images, in lookup order
    std::vector<bool> relevant;  // by image; those indexed later are not known
    bool lazy = false;
    std::shared_ptr<const BoundReferences> bound;
    std::vector<uint32_t> missing;  // slots of weak references without definition
  };

  // The earlier relocation of `image` whose relevant scope equals that of `scope`; null if none.
  const Relocation* find(ImageId image, const std::vector<ImageId>& scope, bool lazy) const;
  void add(ImageId image, const std::vector<ImageId>& scope, Relocation relocation);
  // References that all relocations have bound together.
  size_t size() const { return size_; }

  // All of it, for a later run that takes the index of the same images (Images::give_index).
  // `sections` refers to it.
  void give(Packer& packer, SectionWriter& sections) const;
  // What give has written. Looks at all numbers before it believes them; false: they do not fit,
  // and nothing is known. `sections` is of memory that outlives this and what it gives.
  bool take(const Images& images, Unpacker& unpacker, SectionReader& sections);

 private:
  static constexpr size_t kMostPerImage = 16;
  size_t size_ = 0;
  std::unordered_map<ImageId, std::vector<Relocation>> relocations_;
};

}  // namespace cohabit::sim
