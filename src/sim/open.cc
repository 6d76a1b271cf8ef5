// dlopen: dl_open_worker of elf/dl-open.c. In two parts, because the constructors that run between
// them may open more: open_begin maps, relocates and extends scopes; open_end makes global.
#include <fmt/format.h>

#include <algorithm>

#include "sim/state.h"

namespace cohabit::sim {

void Simulation::State::make_global(ObjectId id) {
  if (!rule(Rule::kGlobalPromotion)) return;
  const int ns = object(id).ns;
  if (namespaces[ns].loaded.empty()) return;
  const ObjectId main = namespaces[ns].loaded.front();
  // A copy: the list that grows may be the one that is read.
  const std::vector<ObjectId> added = object(id).search_list;
  for (const ObjectId member : added) {
    if (object(member).global) continue;
    object(member).global = true;
    object(main).search_list.push_back(member);
  }
}

// Opening what is already open changes little: flags only.
Result<OpenWork> Simulation::State::open_mapped(ObjectId id, int flags) {
  if ((flags & kRtldNodelete) && rule(Rule::kNodelete)) object(id).nodelete_active = true;
  if ((flags & kRtldGlobal) && !object(id).global && rule(Rule::kPromotionOfLoaded))
    make_global(id);
  return OpenWork{id, flags, false};
}

// _dl_open: which namespace. dlopen takes its caller's.
Result<int> Simulation::State::choose_namespace(ObjectId caller, int64_t wanted) const {
  const auto in_use = [&](int64_t ns) { return !namespaces[ns].loaded.empty(); };
  if (wanted == kCallerNamespace) return object(caller).ns;
  if (wanted == kNewNamespace) {
    for (int ns = 1; ns < kMaxNamespaces; ns++)
      if (!in_use(ns)) return ns;
    return fail("no more namespaces available for dlmopen(): Invalid argument");
  }
  if (wanted < 0 || wanted >= kMaxNamespaces || (wanted != 0 && !in_use(wanted)))
    return fail("invalid target namespace in dlmopen(): Invalid argument");
  return static_cast<int>(wanted);
}

// dl_open_worker_begin: the caller's search paths count where the name is to be searched.
Simulation::State::MapRequest Simulation::State::open_request(const std::string& name, int flags,
                                                              ObjectId caller, int64_t ns_wanted) {
  const bool needs_caller = name.find('$') != std::string::npos ||
                            name.find('/') == std::string::npos || ns_wanted == kCallerNamespace;
  MapRequest request;
  request.name = name;
  request.loader = needs_caller ? caller : kNone;
  request.type = ObjectType::kLoaded;
  request.how = How::kDlopen;
  request.noload = (flags & kRtldNoload) != 0;
  request.deepbind = (flags & kRtldDeepbind) != 0;
  request.from_dlopen = true;
  return request;
}

// Maps what the opened object needs and checks all versions and what the CPU must have.
Result<void> Simulation::State::map_opened(ObjectId id, bool deepbind, size_t first_new) {
  MapRequest base;
  base.ns = object(id).ns;
  base.deepbind = deepbind;
  base.from_dlopen = true;
  base.type = ObjectType::kLoaded;
  if (auto outcome = map_dependencies(id, {}, base); !outcome) return outcome;
  const std::vector<ObjectId> search_list = object(id).search_list;
  for (const ObjectId member : search_list) {
    if (auto checked = check_version_record(object(member).real); !checked) return checked;
    if (auto checked = check_versions(object(member).real); !checked) return checked;
    if (auto checked = check_relr(object(member).real); !checked) return checked;
  }
  if (auto checked = check_cpu_level(id); !checked) return checked;
  if (!rule(Rule::kDeepbindNewOnly) && deepbind)
    for (const ObjectId member : search_list)
      if (member < first_new && member != program)
        object(member).scope.insert(object(member).scope.begin(), {id, false});
  return {};
}

// libc.so first, where it is new; then dependencies before those that need them.
Result<void> Simulation::State::relocate_opened(ObjectId id, bool lazy) {
  if (auto first = relocate_libc_first(object(id).ns, lazy); !first) return first;
  const std::vector<ObjectId> order = object(id).init_order;
  for (size_t i = order.size(); i-- > 0;)
    if (auto relocated = relocate(object(order[i]).real, lazy); !relocated) return relocated;
  return {};
}

// Nothing can fail any more, so what asked to stay now stays.
void Simulation::State::activate_nodelete(int ns) {
  for (const ObjectId member : namespaces[ns].loaded) {
    Object& loaded = object(member);
    if (!loaded.nodelete_pending) continue;
    loaded.nodelete_active = true;
    loaded.nodelete_pending = false;
  }
}

// Those that were loaded before and serve the new object get its search list at the end of theirs.
void Simulation::State::update_scopes(ObjectId id) {
  if (!rule(Rule::kScopeAppended)) return;
  const ScopeElement element{id, false};
  for (const ObjectId member : object(id).search_list) {
    Object& imported = object(member);
    if (!imported.init_called || imported.type != ObjectType::kLoaded) continue;
    if (std::find(imported.scope.begin(), imported.scope.end(), element) == imported.scope.end())
      imported.scope.push_back(element);
  }
}

Result<OpenWork> Simulation::State::open_begin(const std::string& name, int flags, ObjectId caller,
                                               int64_t ns_wanted) {
  failed_search.clear();
  const std::string asked = name.empty() ? "" : name + ": ";
  if ((flags & (kRtldLazy | kRtldNow)) == 0)
    return fail(asked + "invalid mode for dlopen(): Invalid argument");
  // Who is in no list is not found by _dl_find_dso_for_object, and the program stands in.
  if (caller == kNone || object(caller).unlisted) caller = program;
  const Result<int> ns = choose_namespace(caller, ns_wanted);
  if (!ns) return fail(asked + ns.error().message);
  if (name.starts_with("/proc/self/fd/") || name.starts_with("/dev/fd/"))
    sim.problems_.push_back(name + " was opened: which file that descriptor was is not known here");
  if (name == kVdso && *ns == 0)
    return OpenWork{program, kRtldNow, false};  // always there, no file
  MapRequest request = open_request(name, flags, caller, ns_wanted);
  request.ns = rule(Rule::kNamespaces) ? *ns : 0;

  const size_t first_new = sim.objects_.size();
  const auto mapped = map_object(request);
  if (!mapped) return fail(mapped.error().message);
  if (*mapped == kNone) return OpenWork{};
  const ObjectId id = *mapped;
  if (object(id).how == How::kDlopen && object(id).by == kNone) object(id).by = caller;
  object(id).direct_open_count++;
  if (object(id).has_search_list) return open_mapped(id, flags);
  if ((flags & kRtldNodelete) && rule(Rule::kNodelete)) object(id).nodelete_pending = true;

  const bool lazy = lazy_allowed && (flags & kRtldLazy);
  Result<void> outcome = map_opened(id, request.deepbind, first_new);
  if (outcome) outcome = relocate_opened(id, lazy);
  if (!outcome) {
    if (rule(Rule::kFailureUnwinds)) close(id);
    return fail(outcome.error().message);
  }
  activate_nodelete(object(id).ns);
  update_scopes(id);
  if (!rule(Rule::kPromotionAfterInit) && (flags & kRtldGlobal)) make_global(id);
  return OpenWork{id, flags, true};
}

// call_init, up to and including the object of this name; all when it is not among them.
void Simulation::State::run_constructors_until(OpenWork& work, const std::string& constructor) {
  if (!work.run_constructors) return;
  if (init_first != kNone) {
    object(init_first).init_called = true;
    init_first = kNone;
  }
  // A copy: a constructor that opens something may move the objects.
  const std::vector<ObjectId> order = object(work.object).init_order;
  for (size_t i = order.size(); i-- > 0;) {
    Object& initialised = object(order[i]);
    const bool ran_before = initialised.init_called;
    initialised.init_called = true;
    if (!ran_before && !constructor.empty() && initialised.name == constructor) return;
    if (!ran_before && sim.options_.constructors) open_in_constructor(order[i]);
  }
}

// What no trace tells and a table says.
void Simulation::State::open_in_constructor(ObjectId id) {
  for (const ConstructorOpens::Open& open : sim.options_.constructors->opens_of(sim, id))
    for (const std::string& name : open.names)
      if (!single_open(name, open.flags, id, kCallerNamespace).failed) break;
}

void Simulation::State::open_end(const OpenWork& work) {
  if (work.object == kNone || !work.run_constructors) return;
  if (work.flags & kRtldGlobal) make_global(work.object);
  if (!sim.options_.lazy_at_load) return;
  const std::vector<ObjectId> order = object(work.object).init_order;
  for (size_t i = order.size(); i-- > 0;) bind_waiting(object(order[i]).real);
}

}  // namespace cohabit::sim
