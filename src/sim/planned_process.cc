#include "sim/planned_process.h"

#include <fmt/format.h>

namespace cohabit::sim {

StartFacts start_of(const Interpreter& python, const Machine& machine,
                    const std::map<std::string, std::string>& environment) {
  StartFacts start;
  start.program = python.executable;
  start.executable = python.real_path;
  start.arguments = {python.executable};
  for (const auto& [name, value] : environment)
    if (name.starts_with("LD_") || name == "GLIBC_TUNABLES")
      start.environment.emplace_back(name, value);
  start.hwcaps = machine.hwcaps;
  start.platform = machine.platform;
  start.glibc = fmt::format("{}.{}", machine.glibc.major, machine.glibc.minor);
  start.machine = python.elf_machine == elf::EM_AARCH64 ? "aarch64" : "x86_64";
  return start;
}

PlannedProcess::PlannedProcess(Simulation& simulation) : simulation_(simulation) {
  simulation_.start();
  for (ObjectId id = 0; id < simulation_.objects().size(); id++)
    if (simulation_.elf(id).soname.value_or("").starts_with("libpython")) python_ = id;
}

ObjectId PlannedProcess::find_caller(const std::string& path) {
  if (path.empty()) return python_;
  const ObjectId found = simulation_.find_object(path);
  return found == kNone ? python_ : found;
}

std::optional<std::string> PlannedProcess::open(const std::optional<std::string>& name, int flags,
                                                const std::string& caller) {
  const ObjectId from = find_caller(caller);
  LoaderCall call;
  call.name = name;
  call.flags = flags;
  call.caller = from == kNone ? "" : simulation_.objects()[from].name;
  calls_.push_back(call);
  if (!simulation_.start_error().empty())
    return name ? std::optional("the process did not start: " + simulation_.start_error())
                : std::nullopt;
  const CallResult result = simulation_.run_last(calls_);
  if (!name || !result.failed) return std::nullopt;
  return result.error;
}

bool has_as_planned(const python::Plan& plan, const Simulation& simulation) {
  const auto& results = simulation.results();
  for (size_t i = 0; i < plan.opens.size(); i++)
    for (const python::AskedSymbol& symbol : plan.opens[i].symbols)
      if (i >= results.size() || simulation.has_symbol(results[i], symbol.name) != symbol.is_there)
        return false;
  return true;
}

std::optional<bool> PlannedProcess::has_symbol(size_t open, std::string_view name) {
  const auto& results = simulation_.results();
  return open < results.size() ? simulation_.has_symbol(results[open], name) : std::nullopt;
}

std::optional<std::vector<std::string>> PlannedProcess::closure_of(size_t open) {
  const auto& results = simulation_.results();
  if (open >= results.size() || results[open].object == kNone) return std::nullopt;
  std::vector<std::string> paths;
  for (const ObjectId id : simulation_.objects()[results[open].object].search_list)
    paths.push_back(simulation_.images()[simulation_.objects()[id].image].path);
  return paths;
}

}  // namespace cohabit::sim
