// Which definition a reference gets: check_match, do_lookup_x and do_lookup_unique of
// elf/dl-lookup.c, on the index of names instead of on hash tables.
//
// ld.so walks the scope and asks every object's hash table. We turn that round: the index knows all
// definitions of the name, the scope gives each object a position, and the acceptable definition at
// the lowest position is what the walk would have met first. Equivalent because an object's answer
// does not depend on the others, except for the table of unique symbols, which is asked last.
#include <algorithm>

#include "sim/state.h"

namespace cohabit::sim {
namespace {

bool is_plt_class(RefKind kind) {
  return kind != RefKind::kData && kind != RefKind::kCopy;
}

}  // namespace

void Simulation::State::enter_list(const std::vector<ObjectId>& objects) {
  for (const ObjectId id : objects) {
    if (position_stamp[id] == stamp) continue;
    position_stamp[id] = stamp;
    position[id] = next_position++;
    entered.push_back(id);
  }
}

// Gives every object in the scope of `id` its place.
void Simulation::State::enter_scope(ObjectId id) {
  position.resize(sim.objects_.size());
  position_stamp.resize(sim.objects_.size(), 0);
  stamp++;
  next_position = 0;
  entered.clear();
  for (const ScopeElement& element : object(id).scope) {
    if (element.symbolic) {
      enter_list({element.owner});
    } else {
      enter_list(object(element.owner).search_list);
    }
  }
}

// What the object of one image answers for the name whose definitions start at `definition`, which
// is moved past those of this image. Nothing: the walk goes on with the next object.
std::optional<Simulation::State::Candidate> Simulation::State::match(uint32_t& definition,
                                                                     const Reference& reference,
                                                                     bool newest) const {
  const Images& images = sim.images_;
  const ImageId image = images.definition(definition).image;
  const Definition* chosen = nullptr;
  const Definition* only_versioned = nullptr;
  int version_count = 0;
  while (definition != kNone) {
    const Definition& candidate = images.definition(definition);
    if (candidate.image != image) break;
    definition = candidate.next;
    if (chosen) continue;
    if ((candidate.flags & Definition::kUndefined) && is_plt_class(reference.kind) &&
        rule(Rule::kPltValueNotDefinition))
      continue;
    if (!(candidate.flags & Definition::kVersioned) || !rule(Rule::kVersionMatch)) {
      chosen = &candidate;
      continue;
    }
    const bool hidden =
        (candidate.flags & Definition::kVersionHidden) && rule(Rule::kHiddenVersion);
    if (reference.version != 0) {
      const bool refused = reference.version_hidden || candidate.version != 0 || hidden ||
                           !rule(Rule::kUnversionedSatisfies);
      if (candidate.version == reference.version || !refused) chosen = &candidate;
    } else if ((candidate.flags & Definition::kLowVersion) && !(newest && hidden)) {
      chosen = &candidate;
    } else if (!hidden && version_count++ == 0) {
      only_versioned = &candidate;
    }
  }
  if (!chosen && version_count == 1 && rule(Rule::kUnversionedReference)) chosen = only_versioned;
  if (!chosen) return std::nullopt;
  if ((chosen->flags & Definition::kHiddenVisibility) && rule(Rule::kHiddenVisibility))
    return std::nullopt;
  if (!(chosen->flags & (Definition::kGlobal | Definition::kWeak | Definition::kUnique)))
    return std::nullopt;  // local symbols are not for others
  return Candidate{chosen->symbol, (chosen->flags & Definition::kWeak) != 0,
                   (chosen->flags & Definition::kUnique) != 0,
                   (chosen->flags & Definition::kVersioned) == 0};
}

// Of the objects of one file, which are more than one only by accident (Object::twin), the first in
// the scope that was entered.
ObjectId Simulation::State::first_in_scope(ObjectId newest) const {
  ObjectId first = newest;
  for (ObjectId id = object(newest).twin; id != kNone; id = object(id).twin) {
    const bool here = position_stamp[id] == stamp;
    if (here && (position_stamp[first] != stamp || position[id] < position[first])) first = id;
  }
  return first;
}

// The scope must have been entered.
Simulation::Found Simulation::State::lookup(const Reference& reference, int ns, bool newest) const {
  const Images& images = sim.images_;
  const std::vector<ObjectId>& by_image = namespaces[ns].by_image;
  const bool has_twins = namespaces[ns].has_twins;
  const bool weak_waits = dynamic_weak || !rule(Rule::kWeakIsStrong);
  Found best, best_weak;
  uint32_t best_position = kNone, best_weak_position = kNone;
  for (uint32_t definition = images.first_definition(reference.name); definition != kNone;) {
    const ImageId image = images.definition(definition).image;
    ObjectId id = image < by_image.size() ? by_image[image] : kNone;
    if (has_twins && id != kNone) id = first_in_scope(id);
    if (definers) (*definers)[image] = true;
    const bool in_scope = id != kNone && position_stamp[id] == stamp && !object(id).removed &&
                          position[id] < best_position;
    const bool skipped = reference.kind == RefKind::kCopy && in_scope &&
                         rule(Rule::kCopySkipsProgram) &&
                         object(id).type == ObjectType::kExecutable;
    if (!in_scope || skipped) {
      while (definition != kNone && images.definition(definition).image == image)
        definition = images.definition(definition).next;
      continue;
    }
    const auto candidate = match(definition, reference, newest);
    if (!candidate) continue;
    if (candidate->weak && weak_waits) {
      if (position[id] >= best_weak_position) continue;
      best_weak = {object(id).real, candidate->symbol, false, candidate->unversioned};
      best_weak_position = position[id];
      continue;
    }
    best = {object(id).real, candidate->symbol, candidate->unique, candidate->unversioned};
    best_position = position[id];
  }
  return best.object != kNone ? best : best_weak;
}

Simulation::Found Simulation::State::take_unique(NameId name, Found found, ObjectId from,
                                                 RefKind kind, uint32_t reference, int ns) {
  if (!found.unique || !rule(Rule::kUnique)) return found;
  auto& table = namespaces[ns].unique;
  const auto known = table.find(name);
  if (known != table.end()) {
    if (kind == RefKind::kCopy) return found;
    return {known->second.object, known->second.symbol, true};
  }
  if (kind == RefKind::kCopy) {
    table.emplace(name, Namespace::Unique{from, reference});
    return found;
  }
  table.emplace(name, Namespace::Unique{found.object, found.symbol});
  Object& provider = object(found.object);
  if (provider.type == ObjectType::kLoaded && rule(Rule::kUniqueNodelete) &&
      !provider.nodelete_active)
    provider.nodelete_pending = true;
  return found;
}

}  // namespace cohabit::sim
