#include "findings/runtime_classes.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "findings/call_paths.h"
#include "findings/mangled.h"

namespace cohabit {
namespace {

using sim::Binding;
using sim::ObjectId;

// Two compilers make code of nearly the same size from one source; another implementation differs.
// The parts of libstdc++ that toolchains link statically for old systems (exception_ptr's reference
// count in libdnnl and libtorch_cpu) are the same to the byte, and harmless.
bool sizes_differ(uint64_t one, uint64_t other) {
  return std::max(one, other) * 4 > std::min(one, other) * 5;
}

bool is_class_member(const MangledName& name) {
  return name.kind == NameKind::kEntity && !name.destructor && name.scope != "St" &&
         !name.scope.empty();
}

// How the members that both have treat the class's objects, those that are seen to their end. That
// they throw, for which the runtime keeps state, is not held against them.
LayoutComparison compare_members(const Images& images, ImageId runtime, ImageId other,
                                 std::string_view scope) {
  const elf::Object& own = images[runtime].elf;
  std::vector<uint32_t> of_runtime, of_other;
  for (uint32_t i = 1; i < own.symbols.size(); i++) {
    const elf::Sym symbol = own.symbols[i];
    if (symbol.type() != elf::STT_FUNC || symbol.st_shndx == elf::SHN_UNDEF) continue;
    const std::string_view name = own.symbol_name(i);
    if (parse_mangled(name).scope != scope) continue;
    const NameId id = images.find_name(name);
    uint32_t at = id == kNone ? kNone : images.first_definition(id);
    while (at != kNone && images.definition(at).image != other) at = images.definition(at).next;
    if (at == kNone) continue;
    of_runtime.push_back(i);
    of_other.push_back(images.definition(at).symbol);
  }
  const std::vector<MembersReached> one = members_reached(images[runtime], of_runtime);
  const std::vector<MembersReached> two = members_reached(images[other], of_other);
  std::vector<std::pair<uint32_t, uint32_t>> functions;
  for (size_t i = 0; i < one.size(); i++)
    if (one[i].is_whole && two[i].is_whole) functions.emplace_back(of_runtime[i], of_other[i]);
  LayoutComparison layouts = compare_layouts(images[runtime], images[other], functions);
  layouts.keeps_state = false;
  return layouts;
}

// What the runtime itself offers as weak are instantiations of templates (std::string): their code
// stands in headers, every library may carry it, and its objects are the same everywhere. Whole-
// program optimisation makes such copies strong (libarrow_compute 26), so only this side tells.
bool is_instantiation(const elf::Sym& own) {
  return own.bind() == elf::STB_WEAK;
}

}  // namespace

void RuntimeClasses::find_split_in_itself(const std::vector<Candidate>& candidates,
                                          std::vector<CaptureGroup>& groups) {
  std::map<std::tuple<ObjectId, ObjectId, std::string_view>, std::vector<Candidate>> by_scope;
  for (const Candidate& candidate : candidates) {
    const MangledName name = parse_mangled(simulation_.images().name(candidate.name));
    const Binding binding = simulation_.bindings()[candidate.binding];
    if (is_class_member(name) &&
        !is_instantiation(process_.image(binding.from).elf.symbols[binding.reference]))
      by_scope[{binding.from, binding.to, name.scope}].push_back(candidate);
  }
  std::unordered_map<ImageId, CallPaths> code;
  for (const auto& [key, members] : by_scope) {
    const ObjectId own = std::get<0>(key), provider = std::get<1>(key);
    const std::string_view scope = std::get<2>(key);
    const elf::Object& elf = process_.image(own).elf;
    CaptureGroup group;
    group.consumer = group.own = own;
    group.provider = provider;
    group.family = std::string(scope);
    std::vector<uint32_t> captured_symbols;
    for (const Candidate& member : members) {
      const Binding binding = simulation_.bindings()[member.binding];
      group.bindings.push_back(member.binding);
      if (sizes_differ(elf.symbols[binding.reference].st_size,
                       process_.image(binding.to).elf.symbols[binding.definition].st_size))
        captured_symbols.push_back(binding.reference);
    }
    group.captured = static_cast<uint32_t>(members.size());
    // Who enters this class of the runtime, and where.
    std::map<uint32_t, ObjectId> entered;
    std::unordered_set<ObjectId> outsiders;
    const auto may_enter = [&](ObjectId from, ObjectId to) {
      return to == own && from != own && from != provider && process_.counts(from) &&
             !process_.ownership().same(from, provider);
    };
    const uint32_t family = families_.cpp_family(members.front().name);
    simulation_.bindings().each(may_enter, [&](uint32_t at, const Binding& binding) {
      if (families_.cpp_family(process_.reference(binding).name) != family) return;
      const MangledName name = parse_mangled(elf.symbol_name(binding.definition));
      if (name.kind != NameKind::kEntity || name.scope != scope) return;
      entered.try_emplace(binding.definition, binding.from);
      outsiders.insert(binding.from);
      if (group.staying.size() < kKeptStaying) group.staying.push_back(at);
    });
    if (!entered.empty() && !captured_symbols.empty()) {
      const ImageId image = process_.object(own).image;
      const CallPaths& paths = code.try_emplace(image, process_.image(own)).first->second;
      const auto same_scope = [&](uint32_t symbol) {
        return parse_mangled(elf.symbol_name(symbol)).scope == scope;
      };
      for (const uint32_t target : captured_symbols)
        for (const uint32_t caller : paths.callers_of({target}, same_scope))
          if (entered.contains(caller)) group.paths.emplace_back(caller, target);
    }
    group.stays = static_cast<uint32_t>(entered.size());
    group.entered_by.assign(outsiders.begin(), outsiders.end());
    std::sort(group.entered_by.begin(), group.entered_by.end());
    const bool alive = !group.paths.empty() && entered.size() > 1;
    if (alive)
      group.layouts = compare_members(simulation_.images(), process_.object(own).image,
                                      process_.object(provider).image, scope);
    group.verdict = group.layouts.is_same()                           ? Verdict::kAlikeSplit
                    : alive && is_entered_on_request(process_, group) ? Verdict::kLiveSplit
                    : alive                                           ? Verdict::kLatentSplit
                                                                      : Verdict::kDeadSplit;
    groups.push_back(std::move(group));
  }
}

// One class of the runtime, as one object refers to it.
struct RuntimeClasses::Scope {
  ObjectId consumer = kNone;
  std::string_view name;
  uint32_t family = kNone;
  std::map<ObjectId, std::map<NameId, uint32_t>> by_provider;  // name -> binding
};

// Constructors are left out: what they lay down is fixed by headers, since every caller knows the
// object's size.
void RuntimeClasses::collect_members(Scope& scope) {
  const auto is_its = [&](ObjectId from, ObjectId to) {
    return from == scope.consumer && process_.counts(to);
  };
  simulation_.bindings().each(is_its, [&](uint32_t at, const Binding& binding) {
    const NameId id = process_.reference(binding).name;
    if (families_.cpp_family(id) != scope.family) return;
    const MangledName name = parse_mangled(simulation_.images().name(id));
    if (is_class_member(name) && !name.constructor && name.scope == scope.name &&
        !is_instantiation(process_.image(binding.to).elf.symbols[binding.definition]))
      scope.by_provider[binding.to].try_emplace(id, at);
  });
}

// Than the definition of the same name in `copy`; a copy without one says nothing.
bool RuntimeClasses::is_other_code(const Binding& binding, ObjectId copy) const {
  const Images& images = simulation_.images();
  const ImageId image = process_.object(copy).image;
  const uint64_t size = process_.image(binding.to).elf.symbols[binding.definition].st_size;
  bool differs = false;
  for (uint32_t at = images.first_definition(process_.reference(binding).name); at != kNone;
       at = images.definition(at).next) {
    if (images.definition(at).image != image) continue;
    if (!sizes_differ(size, images[image].elf.symbols[images.definition(at).symbol].st_size))
      return false;
    differs = true;
  }
  return differs;
}

bool RuntimeClasses::is_other_code_than_runtimes(const Binding& binding) const {
  for (ObjectId copy = 0; copy < process_.object_count(); copy++)
    if (process_.is_cpp_runtime(copy) && copy != binding.to && is_other_code(binding, copy))
      return true;
  return false;
}

void RuntimeClasses::add_split(const Scope& scope, std::vector<CaptureGroup>& groups) const {
  for (const auto& [copy, others] : scope.by_provider) {
    if (!process_.is_cpp_runtime(copy)) continue;
    for (const auto& [provider, members] : scope.by_provider) {
      if (provider == copy || process_.ownership().same(scope.consumer, provider)) continue;
      // Most of the class has moved together, and works: TensorFlow 2.19 gives sentencepiece and
      // gRPC what opens and reads a random_device, and the system's closes it.
      if (members.size() > others.size()) continue;
      CaptureGroup group;
      group.consumer = scope.consumer;
      group.own = copy;
      group.provider = provider;
      group.family = std::string(scope.name);
      bool differs = false;
      for (const auto& [name, at] : members) {
        group.bindings.push_back(at);
        differs |= is_other_code(simulation_.bindings()[at], copy);
      }
      if (!differs) continue;
      for (const auto& [name, at] : others)
        if (group.staying.size() < kKeptStaying) group.staying.push_back(at);
      group.captured = static_cast<uint32_t>(members.size());
      group.stays = static_cast<uint32_t>(others.size());
      group.layouts = compare_members(simulation_.images(), process_.object(copy).image,
                                      process_.object(provider).image, scope.name);
      group.verdict = group.layouts.is_same() ? Verdict::kAlikeSplit
                      : process_.ownership().serves_request(scope.consumer, provider)
                          ? Verdict::kLiveSplit
                          : Verdict::kLatentSplit;
      groups.push_back(std::move(group));
    }
  }
}

void RuntimeClasses::find_split_for_others(const std::vector<Candidate>& candidates,
                                           std::vector<CaptureGroup>& groups) {
  std::map<std::pair<ObjectId, std::string_view>, Scope> scopes;
  for (const Candidate& candidate : candidates) {
    const MangledName name = parse_mangled(simulation_.images().name(candidate.name));
    const Binding binding = simulation_.bindings()[candidate.binding];
    // Nearly all end here: the other questions take a walk over all bindings.
    if (!is_class_member(name) || name.constructor || !is_other_code_than_runtimes(binding))
      continue;
    const ObjectId consumer = binding.from;
    scopes.try_emplace({consumer, name.scope},
                       Scope{consumer, name.scope, families_.cpp_family(candidate.name), {}});
  }
  for (auto& [key, scope] : scopes) {
    collect_members(scope);
    add_split(scope, groups);
  }
}

}  // namespace cohabit
