// What processes that are never started would open: each is planned in a process that is simulated
// as it goes, several at the same time on the machine's processors.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_set>

#include "base/paths.h"
#include "base/together.h"
#include "cli/examine.h"
#include "sim/planned_process.h"
#include "sim/simulation.h"

namespace cohabit {
namespace {

// What the program's own modules import, those that no installer brought.
std::vector<std::string> imports_of(const World& world, const python::Plan& plan) {
  std::unordered_set<std::string_view> own = {"__main__"}, seen;
  for (const python::PlannedModule& module : plan.modules) {
    const auto& sites = world.python->site_directories;
    const bool installed =
        module.path.empty() || is_below(module.path, world.python->standard_library) ||
        std::any_of(sites.begin(), sites.end(),
                    [&](const std::string& site) { return is_below(module.path, site); });
    if (!installed) own.insert(module.name);
  }
  std::vector<std::string> imports;
  for (const auto& [importer, name] : plan.wanted)
    if (own.contains(importer) && seen.insert(name).second) imports.push_back(name);
  return imports;
}

// Plans at the same time: one of TensorFlow takes 230 MB.
constexpr size_t kMostAtOnce = 4;

python::Finder& finder_of(const World& world, PlanTools& tools) {
  if (!tools.finder)
    tools.finder.emplace(world.kept ? world.kept->tree() : world.tree, *world.python);
  return *tools.finder;
}

// The plan of an earlier run, if ld.so would answer to its opens as it did then.
bool open_again(const python::Plan& plan, sim::PlannedProcess& process) {
  return std::all_of(plan.opens.begin(), plan.opens.end(), [&](const python::PlannedOpen& open) {
    return process.open(open.name, open.flags, open.caller).value_or("") == open.error;
  });
}

// One process from its start; `kept`, if given, is what it would open, else that is worked out.
// False: what was kept is wrong. Changes nothing but the tools.
bool plan_process(const World& world, PlanTools& tools, const python::PlanRequest& request,
                  std::optional<python::Plan> kept, Sequence& sequence) {
  sequence.trace.start = sim::start_of(*world.python, world.machine, request.environment);
  sim::Options settings;
  settings.cache = &tools.bindings;
  settings.constructors = tools.later ? &*tools.later : nullptr;
  sim::Simulation simulation(tools.images, world.machine, sequence.trace.start, settings);
  sim::PlannedProcess process(simulation);
  if (kept && !open_again(*kept, process)) return false;
  sequence.plan = kept ? std::move(*kept)
                       : python::make_plan(finder_of(world, tools), tools.images,
                                           world.distributions, process, request, tools.plans);
  sequence.trace.calls = process.calls();
  return true;
}

bool plan_as_kept(World& world, const python::PlanRequest& request, Sequence& sequence) {
  std::optional<python::Plan> kept = world.kept ? world.kept->find(request) : std::nullopt;
  return kept && plan_process(world, world, request, std::move(kept), sequence);
}

// After each plan, by whatever tools it was made.
void note(World& world, const python::Plan& plan) {
  for (const python::PlanEvent& event : plan.events)
    if (event.kind == python::PlanEvent::kVariable)
      world.variables_sought.insert(plan.sought[event.index]);
}

void keep(World& world, const python::PlanRequest& request, const python::Plan& plan) {
  if (world.kept) world.kept->add(request, plan);
}

// About how long the plan of a module takes against others: how much its distribution has. Where
// that is not told, nothing but time is lost.
uint64_t work_of(World& world, const std::string& module) {
  const auto spec = finder_of(world).find_top_level(module);
  if (!spec || !spec->is_package()) return 0;
  const std::string& directory = spec->search.front();
  uint64_t most = 0;
  for (const Distribution& one : world.distributions.all()) {
    const bool is_its = one.name == module || one.has_native_files_below(directory);
    const auto record = is_its ? world.tree.stat(one.metadata + "/RECORD")
                               : tl::expected<FileStatus, int>(FileStatus{});
    if (record) most = std::max(most, record->size);
  }
  return most;
}

// What takes longest goes first, and with the world's own tools: what they learn is needed again.
void plan_at_once(World& world, const std::vector<python::PlanRequest>& requests,
                  std::vector<size_t> left, std::vector<Sequence>& planned) {
  if (left.size() > 1) {
    std::vector<uint64_t> work(requests.size());
    for (const size_t i : left) work[i] = work_of(world, requests[i].imports[0]);
    std::stable_sort(left.begin(), left.end(),
                     [&](size_t a, size_t b) { return work[a] > work[b]; });
  }
  // What stands in for a driver is known to the world's images only.
  const size_t lanes = world.machine.assumed.empty() ? std::min(left.size(), kMostAtOnce) : 1;
  std::atomic<size_t> next{1};
  const auto plan_some = [&](PlanTools& tools, size_t at) {
    for (; at < left.size(); at = next++)
      plan_process(world, tools, requests[left[at]], std::nullopt, planned[left[at]]);
  };
  together(lanes, [&](size_t lane) {
    if (lane == 0) return plan_some(world, 0);
    PlanTools own(world.tree);
    if (world.later) own.later.emplace(world.later->afresh());
    plan_some(own, next++);
  });
}

}  // namespace

python::Finder& finder_of(World& world) {
  return finder_of(world, world);
}

Sequence plan_request(World& world, const python::PlanRequest& request) {
  Sequence sequence;
  if (!plan_as_kept(world, request, sequence)) {
    plan_process(world, world, request, std::nullopt, sequence);
    keep(world, request, *sequence.plan);
  }
  note(world, *sequence.plan);
  return sequence;
}

std::vector<Sequence> plan_each(World& world, const std::vector<std::string>& modules,
                                const std::map<std::string, std::string>& environment) {
  std::vector<python::PlanRequest> requests(modules.size());
  std::vector<Sequence> planned(modules.size());
  std::vector<size_t> left;
  for (size_t i = 0; i < modules.size(); i++) {
    requests[i].imports = planned[i].imports = {modules[i]};
    requests[i].environment = environment;
    if (!plan_as_kept(world, requests[i], planned[i])) left.push_back(i);
  }
  plan_at_once(world, requests, left, planned);
  for (const size_t i : left) keep(world, requests[i], *planned[i].plan);
  for (const Sequence& one : planned) note(world, *one.plan);
  return planned;
}

Sequence plan_sequence(World& world, const std::vector<std::string>& imports,
                       const std::map<std::string, std::string>& environment) {
  python::PlanRequest request;
  request.imports = imports;
  request.environment = environment;
  Sequence sequence = plan_request(world, request);
  sequence.imports = imports;
  return sequence;
}

Sequence plan_program(World& world, const Program& program,
                      const std::map<std::string, std::string>& environment) {
  Sequence sequence = plan_request(world, request_of(program, environment));
  sequence.program = program.title;
  if (program.notebook) python::name_cells(*program.notebook, program.file, *sequence.plan);
  sequence.imports = imports_of(world, *sequence.plan);
  return sequence;
}

}  // namespace cohabit
