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
  explicit Sieve(const ProcessView& process)
      : process_(process), images_(process.simulation().images()) {}

  void look_at(uint32_t index);
  Candidates take() { return std::move(result_); }

 private:
  bool has_other_provider(const Binding& binding, NameId name) const;
  // Counts why, and says whether the candidate can be forgotten.
  bool set_aside(const Binding& binding, ObjectId own, uint32_t own_symbol, NameId name);
  bool is_runtime_name(NameId name) const;
  bool copied_into(const Binding& binding, NameId name);
  bool is_new(const Binding& binding) {
    return seen_.insert(uint64_t{binding.from} << 32 | binding.reference).second;
  }

  const ProcessView& process_;
  const Images& images_;
  Candidates result_;
  ObjectId entered_ = kNone;  // whose closure is the lookup scope
  std::unordered_set<uint64_t> seen_;
  std::unordered_set<NameId> copies_;  // what the program took by copy relocations
  bool copies_known_ = false;
};

// 95 % of names have one definition in the process: those end here.
bool Sieve::has_other_provider(const Binding& binding, NameId name) const {
  for (uint32_t at = images_.first_definition(name); at != kNone; at = images_.definition(at).next)
    for (const ObjectId object : process_.objects_of(images_.definition(at).image))
      if (object != binding.to && process_.in_closure(binding.from, object)) return true;
  return false;
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

void Sieve::look_at(uint32_t index) {
  const Binding& binding = process_.simulation().bindings()[index];
  if (binding.from == binding.to || !process_.counts(binding.from) || !process_.counts(binding.to))
    return;
  const Reference& reference = process_.reference(binding);
  const NameId name = reference.name;
  if (!has_other_provider(binding, name)) return;
  if (entered_ != binding.from) {
    entered_ = binding.from;
    process_.simulation().enter_lookup_scope(process_.closure(binding.from));
  }
  const auto own = process_.simulation().lookup_entered(reference, process_.object(entered_).ns);
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
  }
}

}  // namespace

Candidates find_candidates(const ProcessView& process) {
  Sieve sieve(process);
  const auto count = static_cast<uint32_t>(process.simulation().bindings().size());
  for (uint32_t index = 0; index < count; index++) sieve.look_at(index);
  return sieve.take();
}

}  // namespace cohabit
