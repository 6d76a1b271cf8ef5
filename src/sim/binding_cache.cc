#include "sim/binding_cache.h"

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
  auto& list = relocations_[image];
  if (list.size() == kMostPerImage) list.erase(list.begin());
  list.push_back(std::move(relocation));
}

}  // namespace cohabit::sim
