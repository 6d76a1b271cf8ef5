// What processes that are never started would open: each is planned in a process that is simulated
// as it goes.
#include <algorithm>
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

// At the same time: a plan of TensorFlow takes 230 MB.
constexpr size_t kMostLanes = 4;

// The plan of an earlier run, if ld.so would answer to its opens as it did then.
bool open_again(const python::Plan& plan, sim::PlannedProcess& process) {
  return std::all_of(plan.opens.begin(), plan.opens.end(), [&](const python::PlannedOpen& open) {
    return process.open(open.name, open.flags, open.caller).value_or("") == open.error;
  });
}

// One process from its start; `kept`, if given, is what it would open, else that is worked out.
// False: what was kept is wrong. Changes nothing but the tools.
bool plan_process(const World& world, ProcessTools& tools, const python::PlanRequest& request,
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

bool plan_as_kept(World& world, ProcessTools& tools, const python::PlanRequest& request,
                  Sequence& sequence) {
  std::optional<python::Plan> kept;
  if (const std::lock_guard lock(world.planned); world.kept) kept = world.kept->find(request);
  return kept && plan_process(world, tools, request, std::move(kept), sequence);
}

// After each plan, by whatever tools it was made.
void note(World& world, const python::Plan& plan) {
  const std::lock_guard lock(world.planned);
  for (const python::PlanEvent& event : plan.events)
    if (event.kind == python::PlanEvent::kVariable)
      world.variables_sought.insert(plan.sought[event.index]);
}

void keep(World& world, const python::PlanRequest& request, const python::Plan& plan) {
  const std::lock_guard lock(world.planned);
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

}  // namespace

python::Finder& finder_of(const World& world, ProcessTools& tools) {
  if (!tools.finder)
    tools.finder.emplace(world.kept ? world.kept->tree() : world.tree, *world.python);
  return *tools.finder;
}

Lanes lanes_of(World& world, std::deque<ProcessTools>& more) {
  // What stands in for a driver is known to the world's images only.
  const size_t most = world.machine.assumed.empty() ? std::min(processors(), kMostLanes) : 1;
  while (more.size() + 1 < most) {
    ProcessTools& tools = more.emplace_back(world.tree);
    if (world.later) tools.later.emplace(world.later->afresh());
  }
  Lanes lanes = {&world};
  for (size_t i = 0; i + 1 < most; i++) lanes.push_back(&more[i]);
  return lanes;
}

Sequence plan_request(World& world, ProcessTools& tools, const python::PlanRequest& request) {
  Sequence sequence;
  if (!plan_as_kept(world, tools, request, sequence)) {
    plan_process(world, tools, request, std::nullopt, sequence);
    keep(world, request, *sequence.plan);
  }
  note(world, *sequence.plan);
  return sequence;
}

std::vector<std::string> longest_first(World& world, const std::vector<std::string>& modules) {
  if (modules.size() < 2) return modules;
  std::vector<std::pair<uint64_t, std::string>> ranked;
  for (const std::string& module : modules) ranked.emplace_back(work_of(world, module), module);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> sorted;
  for (auto& [work, module] : ranked) sorted.push_back(std::move(module));
  return sorted;
}

Sequence plan_sequence(World& world, ProcessTools& tools, const std::vector<std::string>& imports,
                       const std::map<std::string, std::string>& environment) {
  python::PlanRequest request;
  request.imports = imports;
  request.environment = environment;
  Sequence sequence = plan_request(world, tools, request);
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
