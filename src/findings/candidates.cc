#include "findings/candidates.h"

#include <unordered_set>

#include "findings/mangled.h"

namespace cohabit {
namespace {

using sim::Binding;
using sim::ObjectId;

elf::Sym symbol_of(const ProcessView& process, ObjectId object, uint32_t symbol) {
  return process.image(object).elf.symbols[symbol];
}

class Sieve {
 public:
  Sieve(const ProcessView& process, CaptureFacts& facts)
      : process_(process), facts_(facts), images_(process.simulation().images()) {}

  void look_at(const sim::Bindings::Run& run);
  Candidates take() { return std::move(result_); }

 private:
  void look_from(ObjectId consumer);
  void look_at(uint32_t index, const Binding& binding);
  bool has_other_provider(const Binding& binding, NameId name) const;
  sim::Simulation::Found find_own(const Binding& binding, const Reference& reference);
  // Counts why, and says whether the candidate can be forgotten.
  bool set_aside(const Binding& binding, ObjectId own, uint32_t own_symbol, NameId name);
  bool is_runtime_name(NameId name) const;
  bool copied_into(const Binding& binding, NameId name);
  bool is_new(const Binding& binding);

  const ProcessView& process_;
  CaptureFacts& facts_;
  const Images& images_;
  Candidates result_;
  ObjectId consumer_ = kNone;
  // Null: not told by its files alone.
  std::shared_ptr<const ClosureDefiners::Closure> closure_;
  OwnProviders* owns_ = nullptr;         // in that closure
  ObjectId entered_ = kNone;             // whose closure is the lookup scope
  std::vector<std::vector<bool>> seen_;  // by consumer and its symbol
  std::unordered_set<NameId> copies_;    // what the program took by copy relocations
  bool copies_known_ = false;
};

bool Sieve::is_new(const Binding& binding) {
  if (binding.from >= seen_.size()) seen_.resize(binding.from + 1);
  std::vector<bool>& seen = seen_[binding.from];
  if (binding.reference >= seen.size()) seen.resize(binding.reference + 1024);
  if (seen[binding.reference]) return false;
  seen[binding.reference] = true;
  return true;
}

// A file that is mapped twice is two providers; one that never came to its relocation is not
// indexed.
void Sieve::look_from(ObjectId consumer) {
  consumer_ = consumer;
  closure_ = nullptr;
  if (process_.object(consumer).ns != 0) return;
  std::vector<ImageId> closure;
  for (const ObjectId member : process_.closure(consumer)) {
    const ImageId image = process_.object(member).image;
    if (image == kNone) continue;
    const auto& same = process_.objects_of(image);
    if (same.size() != 1 || same.front() != member || !images_[image].indexed) return;
    closure.push_back(image);
  }
  const ImageId image = process_.object(consumer).image;
  closure_ = facts_.definers->of(image, closure);
  owns_ = &facts_.owns[image];
  if (owns_->closure != closure_) *owns_ = {closure_, {}};
}

// 95 % of names have one definition in the process: those end here.
bool Sieve::has_other_provider(const Binding& binding, NameId name) const {
  if (closure_) {
    const ImageId definer = closure_->definer(binding.slot);
    return definer != kNone && definer != process_.object(binding.to).image;
  }
  for (uint32_t at = images_.first_definition(name); at != kNone; at = images_.definition(at).next)
    for (const ObjectId object : process_.objects_of(images_.definition(at).image))
      if (object != binding.to && process_.in_closure(binding.from, object)) return true;
  return false;
}

// What its closure alone would have given.
sim::Simulation::Found Sieve::find_own(const Binding& binding, const Reference& reference) {
  if (closure_)
    if (const auto known = owns_->by_slot.find(binding.slot); known != owns_->by_slot.end()) {
      const auto [image, symbol] = known->second;
      if (image == kNone) return {};
      return {process_.objects_of(image).front(), symbol};
    }
  if (entered_ != binding.from) {
    entered_ = binding.from;
    process_.simulation().enter_lookup_scope(process_.closure(binding.from));
  }
  const auto own = process_.simulation().lookup_entered(reference, process_.object(entered_).ns);
  if (closure_) {
    const ImageId image = own.object == kNone ? kNone : process_.object(own.object).image;
    owns_->by_slot.emplace(binding.slot, OwnProviders::Own{image, own.symbol});
  }
  return own;
}

bool Sieve::is_runtime_name(NameId name) const {
  for (uint32_t at = images_.first_definition(name); at != kNone; at = images_.definition(at).next)
    for (const ObjectId object : process_.objects_of(images_.definition(at).image))
      if (process_.is_runtime(object)) return true;
  return false;
}

// A program that was linked without -fPIC owns the data it uses, by copy relocations and canonical
// PLT entries: every library is meant to bind to it.
bool Sieve::copied_into(const Binding& binding, NameId name) {
  if (process_.object(binding.to).how != sim::How::kProgram) return false;
  if (symbol_of(process_, binding.to, binding.definition).st_shndx == elf::SHN_UNDEF) return true;
  if (!copies_known_) {
    copies_known_ = true;
    for (const Reference& reference : process_.image(binding.to).references)
      if (reference.kind == RefKind::kCopy) copies_.insert(reference.name);
  }
  return copies_.contains(name);
}

bool Sieve::set_aside(const Binding& binding, ObjectId own, uint32_t own_symbol, NameId name) {
  SetAside& counts = result_.set_aside;
  const elf::Sym chosen = symbol_of(process_, binding.to, binding.definition);
  const elf::Sym expected = symbol_of(process_, own, own_symbol);
  // Made to be one in the process.
  if (chosen.bind() == elf::STB_GNU_UNIQUE || expected.bind() == elf::STB_GNU_UNIQUE)
    return ++counts.unique;
  // Vague linkage: templates and inline functions, that every library may carry.
  if (chosen.bind() == elf::STB_WEAK && expected.bind() == elf::STB_WEAK) return ++counts.weak;
  const NameKind kind = parse_mangled(images_.name(name)).kind;
  if (kind == NameKind::kTypeInfo) return ++counts.type_info;
  if (copied_into(binding, name)) return ++counts.copied;
  if (process_.ownership().same(binding.from, binding.to)) return ++counts.same_distribution;
  return false;
}

void Sieve::look_at(uint32_t index, const Binding& binding) {
  if (binding.from == binding.to || !process_.counts(binding.to)) return;
  const Reference& reference = process_.reference(binding);
  const NameId name = reference.name;
  if (!has_other_provider(binding, name)) return;
  const sim::Simulation::Found own = find_own(binding, reference);
  if (own.object == kNone || own.object == binding.to || !is_new(binding)) return;
  result_.set_aside.raw++;
  if (set_aside(binding, own.object, own.symbol, name)) return;
  if (!is_runtime_name(name)) {
    result_.set_aside.left++;
    result_.foreign.push_back({index, own.object, name});
  } else if (own.object == binding.from && process_.is_cpp_runtime(own.object)) {
    result_.runtime.push_back({index, own.object, name});
  } else {
    result_.set_aside.runtime++;
    if (!process_.is_runtime(binding.from))
      result_.runtime_users.push_back({index, own.object, name});
  }
}

void Sieve::look_at(const sim::Bindings::Run& run) {
  if (!process_.counts(run.from)) return;
  if (consumer_ != run.from) look_from(run.from);
  // Places come rising, and each that is looked up again is among them: those of its own in turn.
  size_t own = 0;
  const auto look = [&](uint32_t place) {
    const sim::BoundReferences::Entry& entry = run.bound->entries[place];
    const sim::Bindings::Run::Own given =
        run.repeats && entry.again
            ? run.own[own++]
            : sim::Bindings::Run::Own{run.providers[entry.provider], entry.definition};
    if (given.to != kNone)
      look_at(run.first + place, run.binding(entry, given.to, given.definition));
  };
  if (!closure_) {
    for (uint32_t place = 0; place < run.count; place++) look(place);
    return;
  }
  const ImageId image = process_.object(run.from).image;
  const ClosureDefiners::Places places = closure_->places_with_others(image, run.bound);
  for (const uint32_t place : *places) {
    if (place >= run.count) return;
    look(place);
  }
}

}  // namespace

Candidates find_candidates(const ProcessView& process, CaptureFacts& facts) {
  Sieve sieve(process, facts);
  for (const sim::Bindings::Run& run : process.simulation().bindings().runs()) sieve.look_at(run);
  return sieve.take();
}

}  // namespace cohabit
