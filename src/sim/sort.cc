// The order of initialisation and relocation: elf/dl-sort-maps.c. Since glibc 2.35 a depth-first
// walk; before (and with the tunable glibc.rtld.dynamic_sort=1) the older exchange sort.
#include <algorithm>

#include "sim/state.h"

namespace cohabit::sim {

// Reverse postorder, filled from the back as the original does; `order` is built reversed.
void Simulation::State::traverse(ObjectId id, bool relocation_dependencies, bool& met,
                                 std::vector<char>& visited, std::vector<ObjectId>& order) const {
  // An explicit stack: a chain of thousands of libraries must not overflow ours.
  struct Frame {
    ObjectId id;
    size_t next = 0;
    size_t next_relocation = 0;
  };
  if (visited[id]) return;
  visited[id] = 1;
  std::vector<Frame> stack{{id}};
  while (!stack.empty()) {
    Frame& frame = stack.back();
    const Object& current = object(frame.id);
    ObjectId child = kNone;
    while (child == kNone && frame.next < current.init_order.size()) {
      const ObjectId dependency = current.init_order[frame.next++];
      if (!visited[dependency] && dependency != program) child = dependency;
    }
    const auto& relocation = current.relocation_dependencies;
    if (child == kNone && relocation_dependencies && !relocation.empty()) {
      met = true;
      while (child == kNone && frame.next_relocation < relocation.size()) {
        const ObjectId dependency = relocation[relocation.size() - 1 - frame.next_relocation++];
        if (!visited[dependency] && dependency != program) child = dependency;
      }
    }
    if (child != kNone) {
      visited[child] = 1;
      stack.push_back({child});
      continue;
    }
    order.push_back(frame.id);
    stack.pop_back();
  }
}

void Simulation::State::sort_depth_first(std::vector<ObjectId>& maps, bool keep_first,
                                         bool for_close) {
  const ObjectId first = maps.empty() ? kNone : maps.front();
  std::vector<char> visited(sim.objects_.size(), 1);  // only objects of `maps` are walked
  const auto walk = [&](const std::vector<ObjectId>& input, bool relocation, bool& met) {
    for (const ObjectId id : input) visited[id] = 0;
    std::vector<ObjectId> order;
    for (size_t i = input.size(); i-- > 0;) traverse(input[i], relocation, met, visited, order);
    std::reverse(order.begin(), order.end());
    return order;
  };
  bool met = false, unused = false;
  std::vector<ObjectId> sorted = walk(maps, for_close, met);
  if (met) sorted = walk(sorted, false, unused);
  maps = std::move(sorted);
  if (met || !keep_first || maps.empty() || maps.front() == first) return;
  // A cycle led back to the object that is being opened; it goes to the front all the same (glibc
  // 2.37, and the stable branches of 2.35 and 2.36 that distributions ship: bug 28937).
  std::rotate(maps.begin(), std::find(maps.begin(), maps.end(), first),
              std::find(maps.begin(), maps.end(), first) + 1);
}

void Simulation::State::sort_original(std::vector<ObjectId>& maps, bool skip_first,
                                      bool for_close) {
  const size_t offset = skip_first ? 1 : 0;
  if (maps.size() <= offset + 1) return;
  const size_t count = maps.size() - offset;
  ObjectId* list = maps.data() + offset;
  std::vector<uint16_t> seen(count, 0);
  const auto contains = [](const std::vector<ObjectId>& ids, ObjectId id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  size_t i = 0;
  while (true) {
    seen[i]++;
    const ObjectId current = list[i];
    bool moved = false, clear = true;
    for (size_t k = count - 1; k > i; k--) {
      const Object& other = object(list[k]);
      bool depends = contains(other.init_order, current);
      if (!depends && for_close && contains(other.relocation_dependencies, current))
        depends = !contains(object(current).init_order, list[k]);
      if (!depends) continue;
      std::rotate(list + i, list + i + 1, list + k + 1);
      if (seen[i + 1] > count - i) {
        i++;
      } else {
        std::rotate(seen.begin() + i, seen.begin() + i + 1, seen.begin() + k + 1);
        clear = false;
      }
      moved = true;
      break;
    }
    if (!moved && ++i == count) return;
    if (clear) std::fill(seen.begin() + i, seen.end(), 0);
  }
}

void Simulation::State::sort_maps(std::vector<ObjectId>& maps, bool skip_first, bool for_close) {
  const auto tunables = variable("GLIBC_TUNABLES").value_or("");
  const bool original =
      !since(35) || tunables.find("glibc.rtld.dynamic_sort=1") != std::string::npos;
  if (original) {
    sort_original(maps, skip_first, for_close);
  } else {
    sort_depth_first(maps, skip_first, for_close);
  }
}

}  // namespace cohabit::sim
