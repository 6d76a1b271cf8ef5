// An object's dependencies: _dl_map_object_deps of elf/dl-deps.c. Breadth-first; a filtee
// (DT_AUXILIARY, DT_FILTER) is put before the object that names it.
#include <algorithm>

#include "sim/state.h"

namespace cohabit::sim {

// The list that is built while it is walked.
struct Simulation::State::Walk {
  struct Entry {
    ObjectId id;
    bool done = false;
  };
  ObjectId root = kNone;
  std::vector<Entry> list;
  std::vector<char> listed;  // l_reserved, by object
  size_t moved = 0;          // filtees, to an earlier place

  bool has(ObjectId id) const { return id < listed.size() && listed[id]; }
  void mark(ObjectId id) {
    if (id >= listed.size()) listed.resize(id + 64, 0);
    listed[id] = 1;
  }
};

// A dependency is asked for by the object that names it. What the program needs is a library.
Simulation::State::MapRequest Simulation::State::request_of(ObjectId from, const std::string& name,
                                                            const MapRequest& base) const {
  MapRequest request = base;
  request.name = name;
  request.loader = from;
  request.how = How::kNeeded;
  const ObjectType type = object(from).type;
  request.type = type == ObjectType::kExecutable ? ObjectType::kLibrary : type;
  return request;
}

Result<void> Simulation::State::add_needed(Walk& walk, size_t at, const std::string& name,
                                           const MapRequest& base, std::vector<ObjectId>& needed) {
  const auto mapped = map_object(request_of(walk.list[at].id, name, base));
  if (!mapped) return fail(mapped.error().message);
  needed.push_back(*mapped);
  if (walk.has(*mapped)) return {};
  walk.mark(*mapped);
  if (rule(Rule::kBreadthFirst)) {
    walk.list.push_back({*mapped});
  } else {
    const size_t after = std::min(at + needed.size(), walk.list.size());
    walk.list.insert(walk.list.begin() + static_cast<ptrdiff_t>(after), {*mapped});
  }
  return {};
}

// In the list of the namespace's objects. The loader does not see that its first object changes:
// what is put before that is in no later walk of the list (no name or file finds it again).
void Simulation::State::move_before(ObjectId moved, ObjectId anchor) {
  Namespace& ns = namespaces[object(moved).ns];
  std::erase(ns.loaded, moved);
  const auto at = std::find(ns.loaded.begin(), ns.loaded.end(), anchor);
  if (at != ns.loaded.begin() && at != ns.loaded.end())
    ns.loaded.insert(at, moved);
  else
    object(moved).unlisted = true;
}

// Filtees of each other are put before each other until the stack is full: one entry of the list
// each time, 32 bytes (elf/dl-deps.c, alloca).
bool Simulation::State::is_endless(Walk& walk, ObjectId current) {
  constexpr size_t kStack = 8 << 20, kEntry = 32;
  if (++walk.moved < kStack / kEntry) return false;
  note_assertion(current,
                 "DT_FILTER or DT_AUXILIARY entries name each other: ld.so puts each before the "
                 "other until its stack is full, and crashes (elf/dl-deps.c)");
  return true;
}

// True: an entry was inserted at `at`, so the current object is now at at+1.
Result<bool> Simulation::State::add_filtee(Walk& walk, size_t& at, int64_t tag,
                                           const std::string& name, const MapRequest& base,
                                           std::vector<ObjectId>& needed) {
  if (!rule(Rule::kFilter)) return false;
  const ObjectId current = walk.list[at].id;
  const auto mapped = map_object(request_of(current, name, base));
  if (!mapped) {
    if (tag == elf::DT_AUXILIARY) return false;  // may be absent
    return fail(mapped.error().message);
  }
  needed.push_back(*mapped);
  if (walk.has(*mapped)) {
    const auto later =
        std::find_if(walk.list.begin() + static_cast<ptrdiff_t>(at) + 1, walk.list.end(),
                     [&](const Walk::Entry& entry) { return entry.id == *mapped; });
    if (later == walk.list.end()) return false;  // already before us
    if (is_endless(walk, current)) return false;
    walk.list.erase(later);
  }
  walk.mark(*mapped);
  walk.list.insert(walk.list.begin() + static_cast<ptrdiff_t>(at), {*mapped});
  at++;
  move_before(*mapped, current);
  return true;
}

Result<void> Simulation::State::walk_dependencies(Walk& walk, const MapRequest& base) {
  size_t run = 0;
  last_errno = 0;  // as glibc does: a name for which no file was tried fails without a reason
  while (run < walk.list.size()) {
    if (walk.list[run].done) {
      run++;
      continue;
    }
    walk.list[run].done = true;
    const ObjectId current = walk.list[run].id;
    const bool first_time =
        !object(current).has_search_list && !object(current).has_init_order && current != walk.root;
    std::vector<ObjectId> needed;
    size_t at = run;  // where the current object stands as filtees are put before it
    Result<void> outcome;
    for (const elf::Dependency& dependency : elf(current).dependencies) {
      const std::string name = expand(std::string(dependency.name), current);
      if (name.empty() && !dependency.name.empty()) continue;
      if (dependency.tag == elf::DT_NEEDED) {
        outcome = add_needed(walk, at, name, base, needed);
        if (!outcome) return outcome;
      } else if (auto added = add_filtee(walk, at, dependency.tag, name, base, needed); !added) {
        return fail(added.error().message);
      }
    }
    if (first_time) {
      Object& done = object(current);
      done.init_order = {current};
      done.init_order.insert(done.init_order.end(), needed.begin(), needed.end());
      done.has_init_order = true;
    }
  }
  return {};
}

void Simulation::State::finish_dependencies(const Walk& walk) {
  std::vector<ObjectId> list;
  list.reserve(walk.list.size());
  for (const Walk::Entry& entry : walk.list) list.push_back(entry.id);
  std::vector<ObjectId> order = list;
  const auto own = std::find(order.begin(), order.end(), walk.root);
  std::rotate(order.begin(), own, own + 1);
  {
    Object& root = object(walk.root);
    root.search_list = list;
    root.has_search_list = true;
    auto& relocation = root.relocation_dependencies;
    std::erase_if(relocation, [&](ObjectId id) { return id != walk.root && walk.has(id); });
  }
  if (rule(Rule::kRelocationOrder)) sort_maps(order, true, false);
  object(walk.root).init_order = std::move(order);
  object(walk.root).has_init_order = true;
}

Result<void> Simulation::State::map_dependencies(ObjectId id, const std::vector<ObjectId>& preloads,
                                                 const MapRequest& base) {
  Walk walk;
  walk.root = id;
  walk.list.push_back({id});
  walk.mark(id);
  for (const ObjectId preloaded : preloads) {
    walk.list.push_back({preloaded});
    walk.mark(preloaded);
  }
  Result<void> outcome = walk_dependencies(walk, base);
  finish_dependencies(walk);
  return outcome;
}

}  // namespace cohabit::sim
