// What processes that are never started would open: each is planned in a process that is simulated
// as it goes.
#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "base/paths.h"
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

// The plan of an earlier run, if ld.so would answer to its opens as it did then.
bool open_again(const python::Plan& plan, sim::PlannedProcess& process) {
  return std::all_of(plan.opens.begin(), plan.opens.end(),
                     [&](const python::PlannedOpen& open) {
                       return process.open(open.name, open.flags, open.caller).value_or("") ==
                              open.error;
                     }) &&
         sim::has_as_planned(plan, process.simulation());
}

// One process from its start; `kept`, if given, is what it would open, else that is worked out.
// False: what was kept is wrong. Changes nothing but the tools.
bool plan_process(const World& world, ProcessTools& tools, const python::PlanRequest& request,
                  std::optional<python::Plan> kept, Sequence& sequence) {
  sequence.trace.start = sim::start_of(*world.python, world.machine, request.environment);
  // Of relative names, and entries of LD_LIBRARY_PATH: an empty one is this directory too.
  if (world.tree.has_process()) sequence.trace.start.cwd = world.tree.current_directory();
  sim::Options settings;
  settings.cache = &tools.bindings;
  settings.constructors = tools.later ? &*tools.later : nullptr;
  auto simulation = std::make_unique<sim::Simulation>(tools.images, world.machine,
                                                      sequence.trace.start, settings);
  sim::PlannedProcess process(*simulation);
  if (kept && !open_again(*kept, process)) return false;
  sequence.plan = kept ? std::move(*kept)
                       : python::make_plan(finder_of(world, tools), tools.images,
                                           world.distributions, process, request, tools.plans);
  sequence.trace.calls = process.calls();
  sequence.played = std::make_shared<Played>(Played{&tools, std::move(simulation)});
  return true;
}

python::PlanRequest request_of(const World& world, const std::vector<std::string>& imports,
                               const std::map<std::string, std::string>& environment) {
  python::PlanRequest request;
  request.imports = imports;
  request.directory = world.first_directory;
  request.environment = environment;
  return request;
}

bool plan_as_kept(World& world, ProcessTools& tools, const python::PlanRequest& request,
                  Sequence& sequence) {
  std::optional<python::Plan> kept;
  if (const std::lock_guard lock(world.planned); world.kept) kept = world.kept->find(request);
  if (!kept) return false;
  if (plan_process(world, tools, request, std::move(kept), sequence)) return true;
  const std::lock_guard lock(world.planned);
  world.kept->forget(request);
  return false;
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

}  // namespace

python::Finder& finder_of(const World& world, ProcessTools& tools) {
  if (!tools.finder)
    tools.finder.emplace(world.kept ? world.kept->tree() : world.tree, *world.python);
  return *tools.finder;
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

Sequence plan_sequence(World& world, ProcessTools& tools, const std::vector<std::string>& imports,
                       const std::map<std::string, std::string>& environment) {
  Sequence sequence = plan_request(world, tools, request_of(world, imports, environment));
  sequence.imports = imports;
  return sequence;
}

std::optional<Sequence> kept_sequence(World& world, ProcessTools& tools,
                                      const std::vector<std::string>& imports,
                                      const std::map<std::string, std::string>& environment) {
  Sequence sequence;
  if (!plan_as_kept(world, tools, request_of(world, imports, environment), sequence))
    return std::nullopt;
  note(world, *sequence.plan);
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
