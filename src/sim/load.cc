// Mapping one object: _dl_map_object, _dl_map_object_from_fd and _dl_new_object of elf/dl-load.c
// and elf/dl-object.c; and the check of symbol versions, elf/dl-version.c.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/paths.h"
#include "sim/state.h"

namespace cohabit::sim {
namespace {

using elf::kPageSize, elf::page_end, elf::page_start;

constexpr size_t kMaxKeptSteps = 500'000;  // of names that were not found; more nobody reads

// The room that _dl_map_segment reserves: since glibc 2.35 more, to align it.
uint64_t reserved_length(const elf::Object& file, bool aligns) {
  const uint64_t length = file.segments.back().p_vaddr + file.segments.back().p_memsz -
                          page_start(file.segments.front().p_vaddr);
  uint64_t align = 0;
  for (const elf::Phdr& segment : file.segments)
    if ((segment.p_align & (segment.p_align - 1)) == 0) align = std::max(align, segment.p_align);
  if (!aligns || align <= kPageSize) return length;
  return length >= align ? length + align : 2 * align;
}

// _dl_map_segments of elf/dl-map-segments.h; null where the sizes are possible.
const char* refused_sizes(const elf::Object& file, bool aligns) {
  constexpr const char* kSegment = "failed to map segment from shared object";
  const uint64_t reserved = reserved_length(file, aligns);
  if (reserved == 0 || is_too_long(reserved, file)) return kSegment;
  const elf::Phdr& first = file.segments.front();
  bool has_holes = false;
  uint64_t end = 0;
  for (const elf::Phdr& segment : file.segments) {
    const uint64_t begin = page_start(segment.p_vaddr);
    has_holes |= &segment != &first && begin != end;
    end = page_end(segment.p_vaddr + segment.p_filesz);
  }
  if (has_holes &&
      page_start(file.segments.back().p_vaddr) < page_end(first.p_vaddr + first.p_filesz))
    return "ELF load command address/offset not page-aligned";
  for (const elf::Phdr& segment : file.segments) {
    const uint64_t begin = page_start(segment.p_vaddr), data = segment.p_vaddr + segment.p_filesz;
    if (&segment != &first && page_end(data) > begin && is_too_long(page_end(data) - begin, file))
      return kSegment;
    const uint64_t all = segment.p_vaddr + segment.p_memsz;
    if (all > page_end(data) && is_too_long(all - page_end(data), file))
      return "cannot map zero-fill pages";
  }
  return nullptr;
}

}  // namespace

bool is_too_long(uint64_t length, const elf::Object& file) {
  return length > (uint64_t{1} << (file.machine == elf::EM_X86_64 ? 47 : 48)) - kPageSize;
}

std::string Simulation::State::display_name(ObjectId id) const {
  const Object& shown = object(id);
  if (!shown.name.empty()) return shown.name;
  if (!sim.start_.arguments.empty()) return sim.start_.arguments[0];
  return sim.start_.program;
}

// _dl_name_match_p
bool Simulation::State::name_matches(const std::string& name, ObjectId id) const {
  const Object& candidate = object(id);
  if (name == candidate.name) return true;
  if (!rule(Rule::kNameMatch)) return false;
  return std::find(candidate.names.begin(), candidate.names.end(), name) != candidate.names.end();
}

void Simulation::State::add_name(ObjectId id, const std::string& name) {
  auto& names = object(id).names;
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  object(id).name_bits |= name_bit(name);
}

ObjectId Simulation::State::find_loaded(const std::string& name, int ns) {
  const uint64_t bit = name_bit(name);
  for (const ObjectId id : namespaces[ns].loaded) {
    Object& candidate = object(id);
    if ((candidate.name_bits & bit) == 0 || candidate.removed) continue;
    if (name_matches(name, id)) return id;
    if (candidate.soname_added || !rule(Rule::kSonameMatch)) continue;
    const auto soname = elf(id).soname;
    if (!soname || *soname != name) continue;
    add_name(id, name);
    candidate.soname_added = true;
    return id;
  }
  return kNone;
}

// The refusals of _dl_map_object_from_fd that the file alone decides.
Result<void> Simulation::State::check_loadable(ImageId image, const MapRequest& request) {
  const elf::Object& file = sim.images_[image].elf;
  const auto refuse = [&](const char* why) { return fail(request.name + ": " + why); };
  const bool aligns = since(35);
  for (const elf::Phdr& segment : file.segments) {
    if (!aligns && segment.p_align % kPageSize)
      return refuse("ELF load command alignment not page-aligned");
    if (!aligns && ((segment.p_vaddr - segment.p_offset) & (segment.p_align - 1)))
      return refuse("ELF load command address/offset not properly aligned");
    if (aligns && (segment.p_vaddr - segment.p_offset) % kPageSize)
      return refuse("ELF load command address/offset not page-aligned");
  }
  if (file.segments.empty()) return refuse("object file has no loadable segments");
  if (file.type != elf::ET_DYN) return refuse("cannot dynamically load executable");
  if (!file.has_dynamic) return refuse("object file has no dynamic section");
  if (const char* why = refused_sizes(file, aligns); why && rule(Rule::kMappable))
    return refuse(why);
  for (const elf::Phdr& segment : file.segments)
    if ((segment.p_flags & elf::PF_X) && sim.images_[image].no_execution)
      return refuse("failed to map segment from shared object");
  if (file.flags_1 & elf::DF_1_PIE)
    return refuse("cannot dynamically load position-independent executable");
  if ((file.flags_1 & elf::DF_1_NOOPEN) && request.from_dlopen)
    return refuse("shared object cannot be dlopen()ed");
  if (file.stack != elf::StackDemand::kNonExecutable && request.from_dlopen && since(41) &&
      file.machine == elf::EM_X86_64)
    return refuse("cannot enable executable stack as shared object requires: Invalid argument");
  return {};
}

// l_scope of a new object: the global scope, then the search list of the object whose loading
// brought it; the other way round with RTLD_DEEPBIND; itself first with DT_SYMBOLIC.
void Simulation::State::set_scope(ObjectId id, const MapRequest& request) {
  const Namespace& ns = namespaces[request.ns];
  std::vector<ScopeElement> scope;
  if (!ns.loaded.empty()) scope.push_back({ns.loaded.front(), false});
  ObjectId root = id;
  for (ObjectId up = object(id).loader; up != kNone; up = object(up).loader) root = up;
  const ScopeElement local{root, false};
  const bool deepbind = request.deepbind && rule(Rule::kDeepbind);
  if (scope.empty() || !(scope[0] == local))
    scope.insert(deepbind ? scope.begin() : scope.end(), local);
  if (elf(id).symbolic && !request.deepbind && rule(Rule::kSymbolic) &&
      !(scope[0] == ScopeElement{id, false}))
    scope.insert(scope.begin(), {id, true});
  object(id).scope = std::move(scope);
}

ObjectId Simulation::State::add_object(ImageId image, const std::string& path,
                                       const MapRequest& request) {
  const auto id = static_cast<ObjectId>(sim.objects_.size());
  Object added;
  added.image = image;
  added.name = path;
  added.requested = request.name;
  added.names = {request.name};
  const auto soname = sim.images_[image].elf.soname;
  added.name_bits = name_bit(path) | name_bit(request.name) | (soname ? name_bit(*soname) : 0);
  added.ns = request.ns;
  added.type = request.type;
  added.how = request.how;
  added.by = request.loader;
  // dlopen's caller serves to find the file; after that the object stands alone.
  const bool dropped = request.how == How::kDlopen && rule(Rule::kCallerDropped);
  added.loader = dropped ? kNone : request.loader;
  added.real = id;
  added.call = call;
  added.origin = directory_of(path.empty() ? path : absolute(path));
  sim.objects_.push_back(std::move(added));
  Namespace& ns = namespaces[request.ns];
  set_scope(id, request);
  ns.used = true;
  ns.loaded.push_back(id);
  if (image >= ns.by_image.size()) ns.by_image.resize(image + 1, kNone);
  object(id).twin = ns.by_image[image];
  ns.has_twins |= object(id).twin != kNone;
  ns.by_image[image] = id;
  if ((elf(id).flags_1 & elf::DF_1_NODELETE) && rule(Rule::kNodelete))
    object(id).nodelete_pending = true;
  if (elf(id).flags_1 & elf::DF_1_INITFIRST) init_first = id;
  sim.images_.index(image);
  return id;
}

// kNone: RTLD_NOLOAD, and it is not loaded.
Result<ObjectId> Simulation::State::map_object(const MapRequest& request) {
  if (const ObjectId known = find_loaded(request.name, request.ns); known != kNone) return known;
  std::vector<SearchStep> steps;
  auto found =
      search(request.name, request.loader, sim.options_.keep_search_steps ? &steps : nullptr);
  if (!found) return fail(found.error().message);
  if (found->image == kNone) {
    steps.clear();
    if (kept_steps < kMaxKeptSteps) (void)search(request.name, request.loader, &steps);
    kept_steps += steps.size();
    failed_search = std::move(steps);
    if (other_class) return fail(request.name + ": wrong ELF class: ELFCLASS32");
    const std::string why = last_errno ? fmt::format(": {}", std::strerror(last_errno)) : "";
    return fail(request.name + ": cannot open shared object file" + why);
  }
  const Namespace& ns = namespaces[request.ns];
  const ImageId image = found->image;
  const ObjectId same_file = image < ns.by_image.size() ? ns.by_image[image] : kNone;
  // ld.so does not know which files itself and the program are.
  const bool has_file =
      same_file != kNone && same_file != program && object(same_file).real != rtld;
  if (has_file && !object(same_file).unlisted && rule(Rule::kFileIdMatch)) {
    add_name(same_file, request.name);
    return same_file;
  }
  if (request.ns != 0 && rtld != kNone && name_matches(request.name, rtld)) {
    const ObjectId mirror = add_object(image, found->path, request);
    object(mirror).real = rtld;
    object(mirror).relocated = true;
    return mirror;
  }
  if (request.noload && rule(Rule::kNoload)) return kNone;
  // ld.so writes "generating link map" before it looks at the segments.
  if (auto loadable = check_loadable(image, request); !loadable) {
    Object rejected;
    rejected.image = image;
    rejected.name = found->path;
    rejected.origin = directory_of(absolute(found->path));
    rejected.requested = request.name;
    rejected.ns = request.ns;
    rejected.how = request.how;
    rejected.by = request.loader;
    rejected.call = call;
    rejected.removed = rejected.unmapped = true;
    rejected.real = static_cast<ObjectId>(sim.objects_.size());
    sim.load_order_.push_back(rejected.real);
    sim.objects_.push_back(std::move(rejected));
    return fail(loadable.error().message);
  }
  const ObjectId id = add_object(image, found->path, request);
  sim.load_order_.push_back(id);
  object(id).search = std::move(steps);
  return id;
}

void Simulation::State::note_assertion(ObjectId id, std::string what) {
  for (const Assertion& known : sim.assertions_)
    if (known.object == id) return;
  sim.assertions_.push_back({id, std::move(what)});
}

Result<void> Simulation::State::check_versions_of(ObjectId id, const elf::VersionNeed& need) {
  ObjectId provider = kNone;
  const std::string file_name(need.file);
  const uint64_t bit = name_bit(file_name);
  for (const ObjectId candidate : namespaces[object(id).ns].loaded) {
    if ((object(candidate).name_bits & bit) == 0 || object(candidate).removed ||
        !name_matches(file_name, candidate))
      continue;
    provider = candidate;
    break;
  }
  if (provider == kNone) {
    note_assertion(id, fmt::format("DT_VERNEED names {}, and nothing of that name is loaded "
                                   "(needed != NULL, elf/dl-version.c)",
                                   need.file));
    return {};
  }
  provider = object(provider).real;
  const elf::Object& file = elf(provider);
  if (file.version_definitions.empty()) return {};
  for (const elf::VersionDefinition& definition : file.version_definitions) {
    if (definition.record != 1 && rule(Rule::kVersionRecords))
      return fail(fmt::format("{}: unsupported version {} of Verdef record", display_name(provider),
                              definition.record));
    if (definition.hash == need.hash && definition.name == need.name) return {};
  }
  if (need.weak) return {};
  return fail(fmt::format("{}: version `{}' not found (required by {})", display_name(provider),
                          need.name, display_name(id)));
}

// The beginning of _dl_check_map_versions: of the first record only.
Result<void> Simulation::State::check_version_record(ObjectId id) const {
  const uint16_t record = elf(id).version_needs_record;
  if (record == 1 || !rule(Rule::kVersionRecords)) return {};
  return fail(
      fmt::format("{}: unsupported version {} of Verneed record", display_name(id), record));
}

std::vector<std::string> Simulation::State::missing_versions(ObjectId id) {
  std::vector<std::string> missing;
  if (object(id).versions_checked || !rule(Rule::kVersionCheck)) return missing;
  object(id).versions_checked = true;
  for (const elf::VersionNeed& need : elf(id).version_needs)
    if (auto checked = check_versions_of(id, need); !checked)
      missing.push_back(checked.error().message);
  return missing;
}

// All are looked at, the first is reported.
Result<void> Simulation::State::check_versions(ObjectId id) {
  const std::vector<std::string> missing = missing_versions(id);
  if (!missing.empty()) return fail(missing[0]);
  return {};
}

// The end of _dl_check_map_versions, since glibc 2.36: an older one would not relocate the file.
Result<void> Simulation::State::check_relr(ObjectId id) const {
  constexpr std::string_view kVersion = "GLIBC_ABI_DT_RELR", kLibc = "libc.so.";
  const elf::Object& file = elf(id);
  if (!file.has_relr || file.version_needs.empty() || !since(36) || !rule(Rule::kRelrVersion))
    return {};
  for (const elf::VersionNeed& need : file.version_needs)
    if (need.name == kVersion && need.hash == elf::sysv_hash(kVersion)) return {};
  for (const elf::Dependency& dependency : file.dependencies)
    if (dependency.tag == elf::DT_NEEDED && dependency.name.starts_with(kLibc))
      return fail(display_name(id) + ": DT_RELR without GLIBC_ABI_DT_RELR dependency");
  return {};
}

// dl_isa_level_check of sysdeps/x86/dl-prop.h, since glibc 2.33: of what was not initialised yet.
Result<void> Simulation::State::check_cpu_level(ObjectId root) {
  if (sim.machine_.elf_machine != elf::EM_X86_64 || !since(33) || !rule(Rule::kCpuLevel)) return {};
  const std::vector<ObjectId>& order = object(root).init_order;
  for (size_t i = order.size(); i-- > 0;) {
    const Object& member = object(order[i]);
    if (member.init_called || member.real == rtld) continue;
    if (elf(order[i]).properties.x86_isa_1_needed & ~sim.machine_.x86_isa_1)
      return fail(display_name(order[i]) + ": CPU ISA level is lower than required");
  }
  return {};
}

}  // namespace cohabit::sim
