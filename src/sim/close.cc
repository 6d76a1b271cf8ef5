// dlclose and the unwinding of a failed dlopen: _dl_close_worker of elf/dl-close.c. What nobody
// opened, depends on, or is bound to goes.
#include <algorithm>

#include "sim/state.h"

namespace cohabit::sim {

std::vector<ObjectId> Simulation::State::mark_used(int ns) const {
  std::vector<char> used(sim.objects_.size(), 0);
  std::vector<ObjectId> pending, kept;
  const auto use = [&](ObjectId id) {
    if (used[id]) return;
    used[id] = 1;
    pending.push_back(id);
  };
  for (const ObjectId id : namespaces[ns].loaded) {
    const Object& candidate = object(id);
    if (candidate.type != ObjectType::kLoaded || candidate.direct_open_count > 0 ||
        candidate.nodelete_active || candidate.held)
      use(id);
  }
  while (!pending.empty()) {
    const ObjectId id = pending.back();
    pending.pop_back();
    kept.push_back(id);
    for (const ObjectId dependency : object(id).init_order) use(dependency);
    for (const ObjectId dependency : object(id).relocation_dependencies) use(dependency);
  }
  return kept;
}

// A kept object loses the search lists of removed ones from its scope; if one of those had brought
// it here, its own dependency list becomes its search list.
void Simulation::State::update_scope_after_close(ObjectId id, const std::vector<char>& used) {
  Object& kept = object(id);
  if (kept.type != ObjectType::kLoaded) return;
  bool new_list = !kept.has_search_list && kept.has_init_order;
  std::vector<ScopeElement> scope;
  bool removed_any = false;
  for (const ScopeElement& element : kept.scope) {
    if (element.symbolic || used[element.owner]) {
      scope.push_back(element);
      continue;
    }
    removed_any = true;
    if (!new_list) continue;
    scope.push_back({id, false});
    kept.search_list = kept.init_order;
    kept.has_search_list = true;
    new_list = false;
  }
  if (removed_any) kept.scope = std::move(scope);
  if (kept.loader != kNone && !used[kept.loader]) kept.loader = kNone;
}

void Simulation::State::unmap(const std::vector<ObjectId>& removed, int ns_index) {
  Namespace& ns = namespaces[ns_index];
  const auto gone = [&](ObjectId id) { return object(id).removed; };
  if (!ns.loaded.empty()) {
    auto& global = object(ns.loaded.front()).search_list;
    std::erase_if(global, [&](ObjectId id) { return gone(id) && object(id).global; });
  }
  release_static_tls(removed);
  for (const ObjectId id : removed) {
    Object& object_removed = object(id);
    object_removed.unmapped = true;
    const ImageId image = object_removed.image;
    if (image < ns.by_image.size() && ns.by_image[image] == id)
      ns.by_image[image] = object_removed.twin;
    if (init_first == id) init_first = kNone;
    rpaths.erase(id);
    runpaths.erase(id);
  }
  std::erase_if(ns.loaded, gone);
  std::erase_if(ns.unique, [&](const auto& entry) { return gone(entry.second.object); });
  if (ns.loaded.empty()) ns.used = false;
}

void Simulation::State::collect(int ns) {
  const std::vector<ObjectId> kept = mark_used(ns);
  std::vector<char> used(sim.objects_.size(), 0);
  for (const ObjectId id : kept) used[id] = 1;
  std::vector<ObjectId> removed;
  for (const ObjectId id : namespaces[ns].loaded) {
    if (used[id]) {
      update_scope_after_close(id, used);
    } else {
      removed.push_back(id);
    }
  }
  if (removed.empty()) return;
  if (removed.size() >
      1) {  // in the order of destruction, which decides what static TLS comes back
    std::vector<ObjectId> all = namespaces[ns].loaded;
    sort_maps(all, ns == 0, true);
    std::erase_if(all, [&](ObjectId id) { return used[id] != 0; });
    removed = std::move(all);
  }
  for (const ObjectId id : removed) object(id).removed = true;
  unmap(removed, ns);
}

// What ld.so's log says of a dlclose: kept by what only the process knows; or gone, so that none of
// those whose lazy symbols we take for bound was ever called.
void Simulation::State::believe(ObjectId id, bool unmapped) {
  object(id).held = !unmapped;
  if (!unmapped) return;
  object(id).nodelete_active = false;
  for (const ObjectId other : namespaces[object(id).ns].loaded)
    std::erase(object(other).relocation_dependencies, id);
}

void Simulation::State::close(ObjectId id) {
  Object& closed = object(id);
  closed.direct_open_count--;
  if (closed.direct_open_count > 0 || closed.type != ObjectType::kLoaded) return;
  if (rule(Rule::kCloseUnmaps) || closed.direct_open_count < 0) collect(closed.ns);
}

}  // namespace cohabit::sim
