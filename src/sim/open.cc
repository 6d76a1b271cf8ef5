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

Result<OpenWork> Simulation::State::open_begin(const std::string& name, int flags, ObjectId caller,
                                               int64_t ns_wanted) {
  failed_search.clear();
  const std::string asked = name.empty() ? "" : name + ": ";
  if ((flags & (kRtldLazy | kRtldNow)) == 0)
    return fail(asked + "invalid mode for dlopen(): Invalid argument");
  if (caller == kNone) caller = program;
  int ns = static_cast<int>(ns_wanted);
  if (ns_wanted == kCallerNamespace) {
    ns = object(caller).ns;
  } else if (ns_wanted == kNewNamespace) {
    for (ns = 1; ns < kMaxNamespaces && !namespaces[ns].loaded.empty();) ns++;
    if (ns == kMaxNamespaces)
      return fail(asked + "no more namespaces available for dlmopen(): Invalid argument");
  } else if (ns < 0 || ns >= kMaxNamespaces || (ns != 0 && namespaces[ns].loaded.empty())) {
    return fail(asked + "invalid target namespace in dlmopen(): Invalid argument");
  }
  if (!rule(Rule::kNamespaces)) ns = 0;

  MapRequest request;
  request.name = name;
  const bool needs_caller = name.find('$') != std::string::npos ||
                            name.find('/') == std::string::npos || ns_wanted == kCallerNamespace;
  request.loader = needs_caller ? caller : kNone;
  request.type = ObjectType::kLoaded;
  request.how = How::kDlopen;
  request.noload = (flags & kRtldNoload) != 0;
  request.deepbind = (flags & kRtldDeepbind) != 0;
  request.from_dlopen = true;
  request.ns = ns;
  const size_t first_new = sim.objects_.size();
  const auto mapped = map_object(request);
  if (!mapped) return fail(mapped.error().message);
  if (*mapped == kNone) return OpenWork{};
  const ObjectId id = *mapped;
  if (object(id).how == How::kDlopen && object(id).by == kNone) object(id).by = caller;
  object(id).direct_open_count++;
  if (object(id).has_search_list) return open_mapped(id, flags);
  if ((flags & kRtldNodelete) && rule(Rule::kNodelete)) object(id).nodelete_pending = true;

  const auto undo = [&](const Error& error) -> Result<OpenWork> {
    if (rule(Rule::kFailureUnwinds)) close(id);
    return fail(error.message);
  };
  MapRequest base;
  base.ns = object(id).ns;
  base.deepbind = request.deepbind;
  base.from_dlopen = true;
  base.type = ObjectType::kLoaded;
  if (auto outcome = map_dependencies(id, {}, base); !outcome) return undo(outcome.error());
  const std::vector<ObjectId> search_list = object(id).search_list;
  for (const ObjectId member : search_list)
    if (auto checked = check_versions(object(member).real); !checked) return undo(checked.error());
  if (!rule(Rule::kDeepbindNewOnly) && request.deepbind)
    for (const ObjectId member : search_list)
      if (member < first_new && member != program)
        object(member).scope.insert(object(member).scope.begin(), {id, false});

  const bool lazy = lazy_allowed && (flags & kRtldLazy);
  if (auto first = relocate_libc_first(object(id).ns, lazy); !first) return undo(first.error());
  const std::vector<ObjectId> order = object(id).init_order;
  for (size_t i = order.size(); i-- > 0;)
    if (auto relocated = relocate(object(order[i]).real, lazy); !relocated)
      return undo(relocated.error());

  for (const ObjectId member : namespaces[object(id).ns].loaded)
    if (object(member).nodelete_pending) {
      object(member).nodelete_active = true;
      object(member).nodelete_pending = false;
    }
  if (rule(Rule::kScopeAppended))
    for (const ObjectId member : search_list) {
      Object& imported = object(member);
      if (!imported.init_called || imported.type != ObjectType::kLoaded) continue;
      const ScopeElement element{id, false};
      if (std::find(imported.scope.begin(), imported.scope.end(), element) == imported.scope.end())
        imported.scope.push_back(element);
    }
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
  const std::vector<ObjectId>& order = object(work.object).init_order;
  for (size_t i = order.size(); i-- > 0;) {
    Object& initialised = object(order[i]);
    const bool ran_before = initialised.init_called;
    initialised.init_called = true;
    if (!ran_before && !constructor.empty() && initialised.name == constructor) return;
  }
}

void Simulation::State::open_end(const OpenWork& work) {
  if (work.object == kNone || !work.run_constructors) return;
  if (work.flags & kRtldGlobal) make_global(work.object);
  if (!sim.options_.lazy_at_load) return;
  const std::vector<ObjectId> order = object(work.object).init_order;
  for (size_t i = order.size(); i-- > 0;) bind_waiting(object(order[i]).real);
}

}  // namespace cohabit::sim
