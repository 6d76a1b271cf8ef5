#include "sim/simulation.h"

#include <algorithm>
#include <unordered_set>

#include "base/paths.h"
#include "sim/state.h"

namespace cohabit::sim {

Simulation::Simulation(Images& images, const Machine& machine, StartFacts start, Options options)
    : images_(images),
      machine_(machine),
      start_(std::move(start)),
      options_(options),
      state_(std::make_unique<State>(*this)) {}

Simulation::Simulation(const Simulation& other)
    : images_(other.images_),
      machine_(other.machine_),
      start_(other.start_),
      options_(other.options_),
      start_error_(other.start_error_),
      more_start_errors_(other.more_start_errors_),
      objects_(other.objects_),
      load_order_(other.load_order_),
      bindings_(other.bindings_),
      missing_(other.missing_),
      assertions_(other.assertions_),
      results_(other.results_),
      problems_(other.problems_),
      state_(std::make_unique<State>(*this, *other.state_)) {}

Simulation::~Simulation() = default;

std::unique_ptr<Simulation> Simulation::copy() {
  bindings_.close();
  return std::unique_ptr<Simulation>(new Simulation(*this));
}

bool Simulation::start() {
  return state_->start();
}

ObjectId Simulation::find_object(const std::string& name, int ns) const {
  if (ns < 0 || ns >= kMaxNamespaces) return kNone;
  if (name.empty()) return ns == 0 && !objects_.empty() ? 0 : kNone;
  const Namespace& space = state_->namespaces[ns];
  for (const ObjectId id : space.loaded)
    if (objects_[id].name == name) return id;
  // Recorded under another name: the program by its path, or a path that differs by links.
  const auto image = images().find_opened(name);
  return image && *image < space.by_image.size() ? space.by_image[*image] : kNone;
}

ObjectId Simulation::State::caller_of(const LoaderCall& recorded) {
  const ObjectId id = sim.find_object(recorded.caller, static_cast<int>(recorded.caller_ns));
  if (id != kNone) return id;
  sim.problems_.push_back("the caller " + recorded.caller +
                          " is not loaded in the simulation; the program stands in for it");
  return program;
}

void Simulation::State::apply_close(const LoaderCall& recorded, CallResult& result) {
  if (recorded.name == kVdso) return;
  const ObjectId id = sim.find_object(recorded.name.value_or(""), static_cast<int>(recorded.ns));
  result.object = id;
  if (id == kNone) {
    sim.problems_.push_back("dlclose of " + recorded.name.value_or("") +
                            ", which is not loaded in the simulation");
    return;
  }
  const bool outlived = object(id).held && object(id).direct_open_count == 0;
  if (recorded.unmapped) believe(id, *recorded.unmapped);
  if (outlived && recorded.inferred && recorded.unmapped == true) return collect(object(id).ns);
  if (object(id).nodelete_active) return;
  if (object(id).direct_open_count == 0) {
    result.failed = true;
    result.error = display_name(id) + ": shared object not open";
    return;
  }
  close(id);
}

// Plays the call at `at` and those made inside it; gives the index of the next one.
size_t Simulation::State::play(const std::vector<LoaderCall>& calls, size_t at) {
  const LoaderCall& recorded = calls[at];
  CallResult& slot = sim.results_[at];
  call = static_cast<uint32_t>(at);
  if (!recorded.cwd.empty()) cwd = recorded.cwd;
  OpenWork work;
  switch (recorded.kind) {
    case CallKind::kDlopen:
    case CallKind::kDlmopen: {
      int64_t ns = recorded.kind == CallKind::kDlmopen ? recorded.link_map_id : kCallerNamespace;
      if (!recorded.name) ns = recorded.kind == CallKind::kDlmopen ? ns : 0;
      if (!recorded.name && ns != 0) {
        slot.failed = true;
        slot.error = "invalid namespace: Invalid argument";
        break;
      }
      if (recorded.kind == CallKind::kDlopen && (recorded.flags & ~kRtldKnown)) {
        slot.failed = true;
        slot.error = "invalid mode parameter";
        break;
      }
      if (ns != 0 && recorded.kind == CallKind::kDlmopen && (recorded.flags & kRtldGlobal)) {
        slot.failed = true;
        slot.error = "invalid mode: Invalid argument";
        break;
      }
      auto opened = open_begin(recorded.name.value_or(""), recorded.flags, caller_of(recorded), ns);
      if (opened) {
        work = *opened;
        slot.object = work.object;
      } else {
        slot.failed = true;
        slot.error = opened.error().message;
        slot.search = failed_search;
      }
      break;
    }
    case CallKind::kDlclose:
      apply_close(recorded, slot);
      break;
    case CallKind::kBind:
      sim.call_lazily(caller_of(recorded), recorded.name.value_or(""));
      break;
  }
  size_t next = at + 1;
  while (next < calls.size() && calls[next].depth > recorded.depth) {
    if (!calls[next].constructor.empty()) run_constructors_until(work, calls[next].constructor);
    next = play(calls, next);
  }
  call = static_cast<uint32_t>(at);
  run_constructors_until(work, "");
  open_end(work);
  return next;
}

void Simulation::run(const std::vector<LoaderCall>& calls) {
  if (!state_->started && !start()) return;
  if (!start_error_.empty()) return;
  results_.clear();
  go_on(calls);
}

void Simulation::go_on(const std::vector<LoaderCall>& calls) {
  if (!start_error_.empty()) return;
  size_t at = results_.size();
  results_.resize(calls.size());
  while (at < calls.size()) at = state_->play(calls, at);
}

CallResult Simulation::run_last(const std::vector<LoaderCall>& calls) {
  if (calls.empty() || !start_error_.empty()) return {};
  results_.resize(calls.size());
  state_->play(calls, calls.size() - 1);
  return results_.back();
}

std::vector<std::string> Simulation::own_directories(ObjectId id) const {
  std::vector<std::string> directories;
  std::unordered_set<std::string> seen;
  const auto add = [&](std::string directory) {
    directory = join_normal("", directory);
    const auto& system = machine_.default_directories;
    if (seen.insert(directory).second &&
        std::find(system.begin(), system.end(), directory + "/") == system.end())
      directories.push_back(std::move(directory));
  };
  add(objects_[id].origin);
  for (const std::string& directory : state_->rpath_of(id).directories) add(directory);
  for (const std::string& directory : state_->runpath_of(id).directories) add(directory);
  return directories;
}

CallResult Simulation::State::single_open(std::string_view name, int flags, ObjectId caller,
                                          int64_t ns) {
  CallResult result;
  if (!sim.start_error_.empty()) {
    result.failed = true;
    result.error = "the process did not start: " + sim.start_error_;
    return result;
  }
  auto opened = open_begin(std::string(name), flags, caller, ns);
  if (!opened) {
    result.failed = true;
    result.error = opened.error().message;
    result.search = failed_search;
    return result;
  }
  run_constructors_until(*opened, "");
  open_end(*opened);
  result.object = opened->object;
  return result;
}

CallResult Simulation::dlopen(std::string_view name, int flags, ObjectId caller) {
  return state_->single_open(name, flags, caller, kCallerNamespace);
}

CallResult Simulation::dlmopen(int64_t link_map_id, std::string_view name, int flags,
                               ObjectId caller) {
  return state_->single_open(name, flags, caller, link_map_id);
}

CallResult Simulation::dlclose(ObjectId object) {
  CallResult result;
  LoaderCall recorded;
  recorded.name = objects_[object].name;
  recorded.ns = objects_[object].ns;
  state_->apply_close(recorded, result);
  return result;
}

void Simulation::call_lazily(ObjectId object, std::string_view symbol) {
  if (object == kNone || !objects_[object].lazy) return;
  state_->enter_scope(object);
  state_->dependency_round++;
  const auto& references = images_[objects_[object].image].references;
  for (uint32_t slot = 0; slot < references.size(); slot++) {
    const Reference& reference = references[slot];
    if (reference.kind != RefKind::kJumpSlot || images_.name(reference.name) != symbol) continue;
    if (!state_->bound_lazily.insert({object, reference.symbol}).second) return;
    (void)state_->bind(object, slot, true);
    return;
  }
}

Simulation::Found Simulation::lookup_in(const std::vector<ObjectId>& scope,
                                        const Reference& reference, int ns) const {
  enter_lookup_scope(scope);
  return lookup_entered(reference, ns);
}

Simulation::Found Simulation::lookup_in(const std::vector<ObjectId>& scope, ObjectId from,
                                        uint32_t reference, RefKind kind) const {
  for (const Reference& candidate : images_[objects_[from].image].references)
    if (candidate.symbol == reference && candidate.kind == kind)
      return lookup_in(scope, candidate, objects_[from].ns);
  return {};
}

// A handle's scope is the object's own search list; a program's grows by what is made global.
std::optional<bool> Simulation::has_symbol(const CallResult& opened, std::string_view name) const {
  if (opened.object == kNone) return std::nullopt;
  Reference reference{};
  reference.name = images_.find_name(name);
  if (reference.name == kNone) return false;
  const Object& object = objects_[opened.object];
  enter_lookup_scope(object.search_list);
  return state_->lookup(reference, object.ns, true).object != kNone;
}

void Simulation::enter_lookup_scope(const std::vector<ObjectId>& scope) const {
  State& state = *state_;
  state.position.resize(objects_.size());
  state.position_stamp.resize(objects_.size(), 0);
  state.stamp++;
  state.next_position = 0;
  state.entered.clear();
  state.enter_list(scope);
}

Simulation::Found Simulation::lookup_entered(const Reference& reference, int ns) const {
  return state_->lookup(reference, ns);
}

}  // namespace cohabit::sim
