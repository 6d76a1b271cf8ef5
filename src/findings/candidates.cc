#include "findings/candidates.h"

#include <unordered_set>

#include "findings/mangled.h"

namespace cohabit {
namespace {

using sim::Binding;
using sim::ObjectId;
using Definition = ClosureDefiners::Definition;
using Kinship = ClosureDefiners::Kinship;

class Sieve {
 public:
  Sieve(const ProcessView& process, ClosureDefiners& definers)
      : process_(process), definers_(definers), images_(process.simulation().images()) {}

  void look_at(const sim::Bindings::Run& run);
  Candidates take() { return std::move(result_); }

 private:
  // A binding whose name somebody else may define.
  struct Suspect {
    uint32_t index;
    ObjectId from, to;
    uint32_t definition;
    NameId name;
  };

  void look_from(ObjectId consumer);
  void look_at_contested(const sim::Bindings::Run& run);
  void look_at(const Binding& binding, uint32_t index);
  bool has_other_provider(const Binding& binding, NameId name) const;
  sim::Simulation::Found find_own(ObjectId from, const Reference& reference);
  Kinship kinship(const Definition& chosen, const Definition& own, NameId name) const;
  void add(const Suspect& suspect, ObjectId own, Kinship kinship);
  // Counts why, and says whether the candidate can be forgotten.
  bool set_aside(const Suspect& suspect, Kinship kinship);
  bool is_runtime_name(NameId name) const;
  bool copied_into(const Suspect& suspect);
  bool is_new(ObjectId from, uint32_t reference);

  const ProcessView& process_;
  ClosureDefiners& definers_;
  const Images& images_;
  Candidates result_;
  ObjectId consumer_ = kNone;
  std::shared_ptr<ClosureDefiners::Closure> closure_;  // null: not told by its files alone
  ObjectId entered_ = kNone;                           // whose closure is the lookup scope
  std::vector<std::vector<bool>> seen_;                // by consumer and its symbol
  std::unordered_set<NameId> copies_;                  // what the program took by copy relocations
  bool copies_known_ = false;
};

bool Sieve::is_new(ObjectId from, uint32_t reference) {
  if (from >= seen_.size()) seen_.resize(from + 1);
  std::vector<bool>& seen = seen_[from];
  if (reference >= seen.size()) seen.resize(size_t{reference} + 1024);
  if (seen[reference]) return false;
  seen[reference] = true;
  return true;
}

// A file that is mapped twice is two providers; one that never came to its relocation is not
// indexed.
void Sieve::look_from(ObjectId consumer) {
  consumer_ = consumer;
  closure_.reset();
  if (process_.object(consumer).ns != 0) return;
  std::vector<ImageId> closure;
  for (const ObjectId member : process_.closure(consumer)) {
    const ImageId image = process_.object(member).image;
    if (image == kNone) continue;
    const auto& same = process_.objects_of(image);
    if (same.size() != 1 || same.front() != member || !images_[image].indexed) return;
    closure.push_back(image);
  }
  closure_ = definers_.of(process_.object(consumer).image, closure);
}

// 95 % of names have one definition in the process: those end here.
bool Sieve::has_other_provider(const Binding& binding, NameId name) const {
  for (uint32_t at = images_.first_definition(name); at != kNone; at = images_.definition(at).next)
    for (const ObjectId object : process_.objects_of(images_.definition(at).image))
      if (object != binding.to && process_.in_closure(binding.from, object)) return true;
  return false;
}

// What its closure alone would have given.
sim::Simulation::Found Sieve::find_own(ObjectId from, const Reference& reference) {
  if (entered_ != from) {
    entered_ = from;
    process_.simulation().enter_lookup_scope(process_.closure(from));
  }
  return process_.simulation().lookup_entered(reference, process_.object(from).ns);
}

Kinship Sieve::kinship(const Definition& chosen, const Definition& own, NameId name) const {
  const auto bind_of = [this](const Definition& one) {
    return images_[one.image].elf.symbols[one.symbol].bind();
  };
  const uint8_t one = bind_of(chosen), other = bind_of(own);
  if (one == elf::STB_GNU_UNIQUE || other == elf::STB_GNU_UNIQUE) return Kinship::kUnique;
  if (one == elf::STB_WEAK && other == elf::STB_WEAK) return Kinship::kWeak;
  const bool is_type_info = parse_mangled(images_.name(name)).kind == NameKind::kTypeInfo;
  return is_type_info ? Kinship::kTypeInfo : Kinship::kOther;
}

bool Sieve::is_runtime_name(NameId name) const {
  for (uint32_t at = images_.first_definition(name); at != kNone; at = images_.definition(at).next)
    for (const ObjectId object : process_.objects_of(images_.definition(at).image))
      if (process_.is_runtime(object)) return true;
  return false;
}

// A program that was linked without -fPIC owns the data it uses, by copy relocations and canonical
// PLT entries: every library is meant to bind to it.
bool Sieve::copied_into(const Suspect& suspect) {
  if (process_.object(suspect.to).how != sim::How::kProgram) return false;
  const Image& program = process_.image(suspect.to);
  if (program.elf.symbols[suspect.definition].st_shndx == elf::SHN_UNDEF) return true;
  if (!copies_known_) {
    copies_known_ = true;
    for (const Reference& reference : program.references)
      if (reference.kind == RefKind::kCopy) copies_.insert(reference.name);
  }
  return copies_.contains(suspect.name);
}

bool Sieve::set_aside(const Suspect& suspect, Kinship kinship) {
  SetAside& counts = result_.set_aside;
  if (kinship == Kinship::kUnique) return ++counts.unique;
  if (kinship == Kinship::kWeak) return ++counts.weak;
  if (kinship == Kinship::kTypeInfo) return ++counts.type_info;
  if (copied_into(suspect)) return ++counts.copied;
  if (process_.ownership().same(suspect.from, suspect.to)) return ++counts.same_distribution;
  return false;
}

void Sieve::add(const Suspect& suspect, ObjectId own, Kinship kinship) {
  result_.set_aside.raw++;
  if (set_aside(suspect, kinship)) return;
  const Candidate candidate{suspect.index, own, suspect.name};
  if (!is_runtime_name(suspect.name)) {
    result_.set_aside.left++;
    result_.foreign.push_back(candidate);
  } else if (own == suspect.from && process_.is_cpp_runtime(own)) {
    result_.runtime.push_back(candidate);
  } else {
    result_.set_aside.runtime++;
    if (!process_.is_runtime(suspect.from)) result_.runtime_users.push_back(candidate);
  }
}

void Sieve::look_at(const Binding& binding, uint32_t index) {
  if (binding.from == binding.to || !process_.counts(binding.to)) return;
  const Reference& reference = process_.reference(binding);
  const NameId name = reference.name;
  if (!has_other_provider(binding, name)) return;
  const auto own = find_own(binding.from, reference);
  if (own.object == kNone || own.object == binding.to || !is_new(binding.from, binding.reference))
    return;
  const Definition chosen{process_.object(binding.to).image, binding.definition};
  add({index, binding.from, binding.to, binding.definition, name}, own.object,
      kinship(chosen, {process_.object(own.object).image, own.symbol}, name));
}

void Sieve::look_at_contested(const sim::Bindings::Run& run) {
  const std::lock_guard lock(closure_->mutex);
  const auto& references = process_.image(run.from).references;
  for (const ClosureDefiners::Place& at : closure_->places(run.bound)) {
    if (at.place >= run.count) return;
    const bool is_own = run.repeats && at.again != kNone;
    const sim::Bindings::Run::Own given =
        is_own ? run.own[at.again]
               : sim::Bindings::Run::Own{run.providers[at.provider], at.definition};
    if (given.to == kNone || given.to == run.from || !process_.counts(given.to)) continue;
    ClosureDefiners::Contested& name = closure_->contested[at.contested];
    const Definition chosen{process_.object(given.to).image, given.definition};
    if (name.definer == chosen.image) continue;
    if (!name.has_own) {
      const auto own = find_own(run.from, references[name.slot]);
      if (own.object != kNone) name.own = {process_.object(own.object).image, own.symbol};
      name.has_own = true;
    }
    if (name.own.image == kNone || name.own.image == chosen.image) continue;
    if (!is_new(run.from, name.reference)) continue;
    if (name.given != chosen) {
      name.given = chosen;
      name.kinship = kinship(chosen, name.own, name.name);
    }
    add({run.first + at.place, run.from, given.to, given.definition, name.name},
        process_.objects_of(name.own.image).front(), name.kinship);
  }
}

void Sieve::look_at(const sim::Bindings::Run& run) {
  if (!process_.counts(run.from)) return;
  if (consumer_ != run.from) look_from(run.from);
  if (closure_) return look_at_contested(run);
  for (uint32_t place = 0; place < run.count; place++)
    if (const auto binding = run.at(place); binding && binding->to != kNone)
      look_at(*binding, run.first + place);
}

}  // namespace

Candidates find_candidates(const ProcessView& process, ClosureDefiners& definers) {
  Sieve sieve(process, definers);
  for (const sim::Bindings::Run& run : process.simulation().bindings().runs()) sieve.look_at(run);
  return sieve.take();
}

}  // namespace cohabit
