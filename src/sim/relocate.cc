// Relocation: _dl_relocate_object and the end of _dl_lookup_symbol_x (protected symbols,
// dependencies that a binding creates), without writing a byte.
#include <fmt/format.h>

#include <algorithm>

#include "sim/state.h"

namespace cohabit::sim {

// A binding into another opened object must keep that object mapped: add_dependency.
void Simulation::State::add_dependency(ObjectId from, ObjectId to, bool for_relocation) {
  Object& provider = object(to);
  if (from == to || provider.type != ObjectType::kLoaded) return;
  if (!rule(Rule::kRelocationDependency)) return;
  if (provider.nodelete_active || (for_relocation && provider.nodelete_pending)) return;
  dependency_stamp.resize(sim.objects_.size(), 0);
  if (for_relocation && dependency_stamp[to] == dependency_round) return;
  dependency_stamp[to] = dependency_round;
  Object& user = object(from);
  const auto holds = [to](const std::vector<ObjectId>& list) {
    return std::find(list.begin(), list.end(), to) != list.end();
  };
  if (holds(user.init_order) || holds(user.relocation_dependencies)) return;
  if (user.type != ObjectType::kLoaded) {
    (for_relocation ? provider.nodelete_pending : provider.nodelete_active) = true;
    return;
  }
  user.relocation_dependencies.push_back(to);
}

Result<void> Simulation::State::place_tls(ObjectId provider, RefKind kind) {
  if (kind != RefKind::kStaticTls && kind != RefKind::kTlsDesc) return {};
  if (!elf(provider).tls || object(provider).static_tls_offset >= 0) return {};
  const bool optional = kind == RefKind::kTlsDesc;
  if (allocate_static_tls(provider, optional) || optional || !rule(Rule::kStaticTls)) return {};
  return fail(display_name(provider) + ": cannot allocate memory in static TLS block");
}

// _dl_check_protected_symbol of sysdeps/generic/dl-protected.h, since glibc 2.35: a copy of a
// protected symbol, or an address that stands for a protected function, in a program.
Result<void> Simulation::State::check_indirect_access(ObjectId from, const Reference& reference,
                                                      Found found) {
  const auto asks = [&](ObjectId id) {
    return (elf(id).properties.needed_1 & elf::GNU_PROPERTY_1_NEEDED_INDIRECT_EXTERN_ACCESS) != 0;
  };
  const bool earlier = !since(36);  // then the program's own note excuses it
  if (!asks(found.object) || (earlier && asks(from)) || !since(35)) return {};
  if (elf(found.object).symbols[found.symbol].visibility() != elf::STV_PROTECTED) return {};
  const elf::Sym symbol = elf(from).symbols[reference.symbol];
  const bool is_copy = reference.kind == RefKind::kCopy;
  const bool is_address =
      reference.kind != RefKind::kData && symbol.st_value != 0 && symbol.st_shndx == elf::SHN_UNDEF;
  if ((!is_copy && !is_address) || !rule(Rule::kIndirectAccess)) return {};
  const char* why = !earlier  ? "error due to GNU_PROPERTY_1_NEEDED_INDIRECT_EXTERN_ACCESS"
                    : is_copy ? "copy relocation against non-copyable protected symbol"
                              : "non-canonical reference to canonical protected function";
  access_refused = true;
  return fail(fmt::format("{}: {}: {}", elf(from).symbol_name(reference.symbol),
                          display_name(found.object), why));
}

// check_match in elf/dl-lookup.c: an object without any version table may serve a versioned
// reference, unless it is the file that the version was to come from.
void Simulation::State::check_version_is_there(ObjectId from, const Reference& reference,
                                               const Found& found) {
  const elf::Version* wanted = elf(from).version_of(reference.symbol);
  if (!wanted || wanted->file.empty() || !elf(found.object).versions.empty()) return;
  if (!name_matches(std::string(wanted->file), found.object)) return;
  note_assertion(
      from, fmt::format("version {} of {} is wanted by {}, and {} has no versions at all "
                        "(check_match, elf/dl-lookup.c)",
                        wanted->name, elf(from).symbol_name(reference.symbol), display_name(from),
                        display_name(found.object)));
}

namespace {

// Static TLS is taken, and a copy is made by the program.
bool needs_more(RefKind kind) {
  return kind == RefKind::kStaticTls || kind == RefKind::kTlsDesc || kind == RefKind::kCopy;
}

}  // namespace

void Simulation::State::note_binding(ObjectId from, uint32_t slot, RefKind kind, Found found,
                                     bool depends_on_more) {
  const auto& references = sim.images_[object(from).image].references;
  sim.bindings_.add({from, found.object, references[slot].symbol, found.symbol, slot, kind, call},
                    object(found.object).image, references, depends_on_more);
}

Result<void> Simulation::State::bind(ObjectId from, uint32_t slot, bool lazy) {
  const Reference& reference = sim.images_[object(from).image].references[slot];
  const int ns = object(from).ns;
  if (lazy && reference.is_protected) return {};  // _dl_fixup takes its own without a lookup
  Found found = lookup(reference, ns);
  if (found.object == kNone) {
    const bool weak = reference.weak;
    sim.missing_.push_back({from, reference.symbol, weak, lazy, call});
    if (weak || lazy) return {};
    const elf::Version* version = elf(from).version_of(reference.symbol);
    return fail(fmt::format("{}: undefined symbol: {}{}{}", display_name(from),
                            elf(from).symbol_name(reference.symbol), version ? ", version " : "",
                            version ? version->name : ""));
  }
  if (from == program)
    if (auto allowed = check_indirect_access(from, reference, found); !allowed) return allowed;
  if (found.unversioned && reference.version != 0) check_version_is_there(from, reference, found);
  const bool depends_on_more =
      found.unique || (found.unversioned && reference.version != 0) || needs_more(reference.kind);
  found = take_unique(reference.name, found, from, reference.kind, reference.symbol, ns);
  if (reference.is_protected && found.object != from && rule(Rule::kProtected)) {
    bool own = reference.kind != RefKind::kData && reference.kind != RefKind::kCopy;
    if (!own) {  // a canonical PLT entry or copy elsewhere is kept, see _dl_lookup_symbol_x
      Reference as_call = reference;
      as_call.kind = RefKind::kPltNow;
      const Found called = take_unique(reference.name, lookup(as_call, ns), from, as_call.kind,
                                       reference.symbol, ns);
      own = called.object != kNone && called.object != from;
    }
    if (own) found = {from, reference.symbol};
  }
  add_dependency(from, found.object, !lazy);
  note_binding(from, slot, reference.kind, found, depends_on_more);
  return place_tls(found.object, reference.kind);
}

std::vector<ImageId> Simulation::State::entered_images() const {
  std::vector<ImageId> images;
  images.reserve(entered.size());
  for (const ObjectId id : entered)
    if (!object(id).removed) images.push_back(object(id).image);
  return images;
}

Result<void> Simulation::State::bind_all(ObjectId id, bool lazy) {
  constexpr uint32_t kSoon = 16;
  const Images& images = sim.images_;
  const Image& image = images[object(id).image];
  const auto& references = image.references;
  const UnexpectedType& unexpected = lazy ? image.unexpected_lazily : image.unexpected;
  const size_t end = std::min(references.size(), unexpected.after);
  for (uint32_t slot = 0; slot < end; slot++) {
    if (slot + 2 * kSoon < references.size())
      images.prefetch_name(references[slot + 2 * kSoon].name);
    if (slot + kSoon < references.size()) images.prefetch_definition(references[slot + kSoon].name);
    if (lazy && references[slot].kind == RefKind::kJumpSlot) continue;
    if (auto bound = bind(id, slot, false); !bound) return bound;
  }
  if (unexpected.after == SIZE_MAX) return {};
  const int digits = unexpected.type > 0xff ? 8 : 2;
  return fail(fmt::format("{}: unexpected {}reloc type 0x{:0{}x}", display_name(id),
                          unexpected.plt ? "PLT " : "", unexpected.type, digits));
}

// As the relocation before, in its order: a provider where it was first met, and what depends on
// more than the scope is looked up.
Result<void> Simulation::State::bind_again(ObjectId id, const BindingCache::Relocation& earlier) {
  const auto& references = sim.images_[object(id).image].references;
  const std::vector<ObjectId>& by_image = namespaces[object(id).ns].by_image;
  const BoundReferences& bound = *earlier.bound;
  std::vector<ObjectId> providers(bound.images.size(), kNone);
  std::vector<std::pair<uint32_t, ObjectId>> met;  // place, provider
  for (size_t i = 0; i < providers.size(); i++) {
    if (bound.first_places[i] == kNone) continue;
    providers[i] = object(by_image[bound.images[i]]).real;
    met.emplace_back(bound.first_places[i], providers[i]);
  }
  std::sort(met.begin(), met.end());
  const auto note_missing = [&](uint32_t end) {
    for (const uint32_t slot : earlier.missing)
      if (slot < end) sim.missing_.push_back({id, references[slot].symbol, true, false, call});
  };
  sim.bindings_.begin_again(id, call, references, earlier.bound, std::move(providers));
  size_t next = 0;
  const auto meet_before = [&](size_t place) {
    for (; next < met.size() && met[next].first < place; next++)
      add_dependency(id, met[next].second, true);
  };
  for (const uint32_t place : bound.again) {
    meet_before(place);
    sim.bindings_.begin_own();
    const uint32_t slot = bound.entries[place].slot;
    if (auto found = bind(id, slot, false); !found) {
      sim.bindings_.end_again(place + 1);
      note_missing(slot);
      return found;
    }
  }
  meet_before(bound.entries.size());
  sim.bindings_.end_again(static_cast<uint32_t>(bound.entries.size()));
  note_missing(UINT32_MAX);
  return {};
}

// The slots of what was found to be missing since then.
std::vector<uint32_t> Simulation::State::missing_slots(ReferenceList references,
                                                       size_t first_missing) const {
  std::vector<uint32_t> slots;
  size_t slot = 0;
  for (size_t i = first_missing; i < sim.missing_.size(); i++) {
    while (references[slot].symbol != sim.missing_[i].reference) slot++;
    slots.push_back(static_cast<uint32_t>(slot++));
  }
  return slots;
}

Result<void> Simulation::State::relocate(ObjectId id, bool lazy) {
  if (object(id).relocated) return {};
  const ImageId image_id = object(id).image;
  sim.images_.index(image_id);
  const Image& image = sim.images_[image_id];
  if (image.elf.bind_now || !rule(Rule::kLazy)) lazy = false;
  dependency_round++;
  enter_scope(id);
  if (image.own_static_tls)
    if (auto placed = place_tls(id, RefKind::kStaticTls); !placed) return placed;
  const bool plain = object(id).ns == 0 && !namespaces[0].has_twins;
  BindingCache* cache = plain ? sim.options_.cache : nullptr;
  const std::vector<ImageId> scope = cache ? entered_images() : std::vector<ImageId>();
  const BindingCache::Relocation* earlier = cache ? cache->find(image_id, scope, lazy) : nullptr;
  if (earlier) {
    if (auto bound = bind_again(id, *earlier); !bound) return bound;
    if (auto safe = protect_relro(id); !safe) return safe;
  } else {
    BindingCache::Relocation fresh{{}, {}, lazy, {}, {}};
    // Of what is not indexed yet nobody knows what it defines.
    for (ImageId other = 0; cache && other < sim.images_.size(); other++)
      fresh.relevant.push_back(!sim.images_[other].indexed);
    const size_t first_missing = sim.missing_.size();
    if (cache) definers = &fresh.relevant;
    sim.bindings_.begin(id, call, image.references);
    Result<void> done = bind_all(id, lazy);
    fresh.bound = sim.bindings_.end();
    definers = nullptr;
    if (!done) return done;
    if (auto safe = protect_relro(id); !safe) return safe;
    if (cache && fresh.bound) {
      fresh.missing = missing_slots(image.references, first_missing);
      cache->add(image_id, scope, std::move(fresh));
    }
  }
  object(id).relocated = true;
  object(id).lazy = lazy;
  return {};
}

// _dl_protect_relro of elf/dl-reloc.c, where nothing can be mapped. What begins in the library and
// ends elsewhere is a defect of the file: mprotect takes the right to write from what it meets
// until a hole, before it fails.
Result<void> Simulation::State::protect_relro(ObjectId id) const {
  const auto [address, size] = elf(id).relro;
  const bool is_empty = elf::page_start(address) == elf::page_start(address + size);
  if (is_empty || !is_too_long(address, elf(id)) || !rule(Rule::kMappable)) return {};
  return fail(
      display_name(id) +
      ": cannot apply additional memory protection after relocation: Cannot allocate memory");
}

// Since glibc 2.39 (bug 31083), before everything else.
Result<void> Simulation::State::relocate_libc_first(int ns, bool lazy) {
  if (!since(39)) return {};
  for (const ObjectId id : namespaces[ns].loaded)
    if (elf(id).soname == "libc.so.6" && !object(id).removed) return relocate(id, lazy);
  return {};
}

void Simulation::State::bind_waiting(ObjectId id) {
  if (!object(id).lazy || object(id).unmapped) return;
  object(id).lazy = false;
  dependency_round++;
  enter_scope(id);
  const auto& references = sim.images_[object(id).image].references;
  for (uint32_t slot = 0; slot < references.size(); slot++)
    if (references[slot].kind == RefKind::kJumpSlot) (void)bind(id, slot, true);
}

}  // namespace cohabit::sim
