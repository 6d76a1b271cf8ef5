// Which objects are the language runtimes? Their names would be easy to list, and wrong the first
// time somebody renames, vendors or relinks one. What they are can be seen:
//
//   the C library   The program's loader is part of it and defines version names (GLIBC_2.2.5 and
//                   so on in DT_VERDEF). Whoever else defines one of the same names is of the same
//                   release: libc, libm, libpthread, libdl, ...
//   the C++ runtime Symbol versions, no dependencies but the C library and plain C helpers, and
//   most
//                   of its strong C++ functions lie in std, which the grammar of mangled names
//                   marks (St) and the language reserves to the implementation. A framework that
//                   carries a static copy of it exports mostly other things.
//   its helpers     What the C++ runtime needs beside the C library: the unwinder.
#include "findings/process_view.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "findings/mangled.h"
#include "findings/symbols.h"

namespace cohabit {

using sim::ObjectId;

namespace {

struct NameInNamespace {
  int ns;
  std::string_view name;
  bool operator==(const NameInNamespace&) const = default;
};
struct NameHash {
  size_t operator()(const NameInNamespace& key) const {
    return std::hash<std::string_view>()(key.name) * 31 + static_cast<size_t>(key.ns);
  }
};
using ByName = std::unordered_map<NameInNamespace, ObjectId, NameHash>;

ByName index_by_name(const ProcessView& process) {
  ByName by_name;
  const auto enter = [&](ObjectId id) {
    if (process.object(id).unmapped || process.object(id).image == kNone) return;
    const int ns = process.object(id).ns;
    if (const auto& soname = process.image(id).elf.soname) by_name.try_emplace({ns, *soname}, id);
    by_name.try_emplace({ns, process.object(id).name}, id);
    for (const std::string& name : process.object(id).names) by_name.try_emplace({ns, name}, id);
  };
  for (const ObjectId id : process.simulation().load_order()) enter(id);
  for (ObjectId id = 0; id < process.object_count(); id++) enter(id);
  return by_name;
}

std::vector<ObjectId> walk_dependencies(const ProcessView& process, const ByName& by_name,
                                        ObjectId root) {
  std::vector<ObjectId> found{root};
  std::unordered_set<ObjectId> seen{root};
  for (size_t at = 0; at < found.size(); at++) {
    const ObjectId id = found[at];
    if (process.object(id).image == kNone) continue;
    for (const elf::Dependency& dependency : process.image(id).elf.dependencies) {
      const auto hit = by_name.find({process.object(id).ns, dependency.name});
      if (hit != by_name.end() && seen.insert(hit->second).second) found.push_back(hit->second);
    }
  }
  return found;
}

bool is_strong_function(const elf::Sym& symbol) {
  return symbol.st_shndx != elf::SHN_UNDEF && symbol.bind() == elf::STB_GLOBAL &&
         symbol.type() == elf::STT_FUNC;
}

}  // namespace

ProcessView::ProcessView(const sim::Simulation& simulation, const Ownership& ownership,
                         const std::string& tracer, CppRuntimes* known)
    : simulation_(simulation), ownership_(ownership) {
  const uint32_t count = object_count();
  const ObjectId our_tracer = tracer.empty() ? kNone : simulation.find_object(tracer);
  counts_.assign(count, false);
  objects_of_image_.resize(simulation.images().size());
  for (ObjectId id = 0; id < count; id++) {
    const sim::Object& entry = object(id);
    if (entry.image == kNone || entry.unmapped || entry.removed) continue;
    if (entry.real == kNone || entry.real == id) objects_of_image_[entry.image].push_back(id);
    counts_[id] = entry.how != sim::How::kLoader && id != our_tracer &&
                  !entry.name.ends_with("/libcohabit_preload.so");
  }
  find_closures();
  CppRuntimes own;
  find_runtimes(known ? *known : own);
}

void ProcessView::find_closures() {
  const uint32_t count = object_count();
  const ByName by_name = index_by_name(*this);
  closures_.resize(count);
  closure_bits_.assign(size_t{count} * count, false);
  for (ObjectId id = 0; id < count; id++) {
    if (!counts_[id]) continue;
    closures_[id] = walk_dependencies(*this, by_name, id);
    for (const ObjectId member : closures_[id]) closure_bits_[size_t{id} * count + member] = true;
  }
}

void ProcessView::find_c_library() {
  const uint32_t count = object_count();
  c_library_.assign(count, false);
  std::unordered_set<std::string_view> versions;
  for (ObjectId id = 0; id < count; id++) {
    if (object(id).how != sim::How::kLoader || object(id).image == kNone) continue;
    c_library_[id] = true;
    for (const auto& version : image(id).elf.version_definitions)
      if (!version.base) versions.insert(version.name);
  }
  for (ObjectId id = 0; id < count; id++) {
    if (object(id).image == kNone) continue;
    for (const auto& version : image(id).elf.version_definitions)
      if (!version.base && versions.contains(version.name)) c_library_[id] = true;
  }
}

bool ProcessView::looks_like_cpp_runtime(ObjectId id) const {
  constexpr uint32_t kEnough = 32;    // members of std: a library has none or hundreds
  constexpr uint32_t kSample = 1024;  // C++ functions looked at
  constexpr uint64_t kMaxLooked = 16384;
  const elf::Object& elf = image(id).elf;
  if (elf.version_definitions.empty()) return false;
  uint32_t cpp = 0;
  uint32_t standard = 0;
  const uint64_t end = std::min<uint64_t>(symbol_count(elf), kMaxLooked);
  for (uint32_t symbol = 1; symbol < end && cpp < kSample; symbol++) {
    if (!is_strong_function(elf.symbols[symbol])) continue;
    const std::string_view name = elf.symbol_name(symbol);
    if (name.substr(0, 2) != "_Z") continue;
    cpp++;
    standard += parse_mangled(name).standard;
  }
  return standard >= kEnough && standard * 2 > cpp;
}

void ProcessView::find_runtimes(CppRuntimes& known) {
  const uint32_t count = object_count();
  find_c_library();
  runtime_ = c_library_;
  cpp_runtime_.assign(count, false);
  for (ObjectId id = 0; id < count; id++) {
    if (!counts_[id] || c_library_[id]) continue;
    // The runtime needs the C library and C helpers: anything with a longer list is not it.
    if (closures_[id].size() > 8) continue;
    const auto [answer, is_new] = known.try_emplace(object(id).image, false);
    if (is_new) answer->second = looks_like_cpp_runtime(id);
    if (!answer->second) continue;
    cpp_runtime_[id] = true;
    for (const ObjectId needed : closures_[id]) runtime_[needed] = true;
  }
}

}  // namespace cohabit
