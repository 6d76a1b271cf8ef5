// Who of an object's dependency closure defines the names that it refers to.
//
// 95 % of references have one definer there, and that is whom they are bound to: no capture. It is
// a matter of the files, so it is remembered for the next process that has the same closure.
#pragma once

#include <unordered_map>
#include <vector>

#include "world/images.h"

namespace cohabit {

class ClosureDefiners {
 public:
  static constexpr ImageId kSeveral = kNone - 1;
  struct Own {
    ImageId image = kNone;
    uint32_t symbol = 0;
  };
  struct Closure {
    std::vector<ImageId> images;             // in lookup order
    std::vector<ImageId> definers;           // by slot of references: one image, kNone or kSeveral
    std::unordered_map<uint32_t, Own> owns;  // by slot: what a lookup in the closure gave
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
