// The variables that `cohabit run` sets besides those of a repair.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/arguments.h"
#include "cli/examine.h"
#include "cli/gpu_options.h"
#include "cli/launch_process.h"
#include "cli/python_command.h"
#include "cli/run_options.h"
#include "findings/rule.h"
#include "imports/finder.h"
#include "repair/memory_shares.h"

namespace cohabit {
namespace {

class NeededForRun {
 public:
  NeededForRun(const RunOptions& options, const StartedPython& started,
               std::vector<VariableChange>& changes)
      : options_(options), started_(started), changes_(changes), world_(tree_) {
    variables_ = own_variables("");
    for (const VariableChange& change : changes) note(change);
    known_ = !started.interpreter.empty() && find_environment(world_, started.interpreter);
    if (known_)
      world_.machine =
          read_machine(tree_, world_.python->elf_machine, "", world_.python->elf_interpreter);
  }

  Result<void> add_all() {
    if (!known_ && !(options_.gpu_memory.empty() && options_.defer.empty()))
      return fail("--gpu-memory and --defer: the command runs no Python that is known");
    if (!known_) return {};
    auto host = gpu_host_of(tree_, world_.machine, variables_, options_.host);
    if (!host) return tl::unexpected<Error>(host.error());
    if (auto done = add_deferred(); !done) return done;
    if (auto done = add_shares(*host); !done) return done;
    if (auto done = add_hook(); !done) return done;
    return options_.no_env ? Result<void>() : add_needed(*host);
  }

 private:
  void note(const VariableChange& change) {
    if (change.value)
      variables_[change.name] = *change.value;
    else
      variables_.erase(change.name);
  }
  void add(const NeededVariable& variable);
  Result<void> add_needed(const cuda::GpuHost& host);
  Result<void> add_shares(cuda::GpuHost& host);
  Result<void> add_deferred();
  void say_what_is_not_there(const std::vector<std::string>& modules);
  Result<void> add_hook();
  Result<std::vector<std::string>> importers_of(const std::vector<std::string>& modules);

  const RunOptions& options_;
  const StartedPython& started_;
  std::vector<VariableChange>& changes_;
  Tree tree_{""};
  World world_;
  VariableMap variables_;  // of the command, so far
  Variables hook_;         // settings of the start-up hook
  bool known_ = false;
};

void NeededForRun::add(const NeededVariable& variable) {
  VariableChange change = change_of(variable, variables_);
  // Not what the user's own variable holds.
  if (change.value)
    say(options_, "sets {}={}{} ({})", change.name, variable.setting == Setting::kCopy ? "$" : "",
        variable.part, change.reason);
  else
    say(options_, "unsets {} ({})", change.name, change.reason);
  note(change);
  changes_.push_back(std::move(change));
}

Result<void> NeededForRun::add_needed(const cuda::GpuHost& host) {
  const LaunchFacts facts{tree_, *world_.python, world_.distributions, host, variables_};
  for (const NeededVariable& variable : find_needs(facts).variables) add(variable);
  auto of_processes = needs_of_processes(world_, variables_, host, options_.host);
  if (!of_processes) return tl::unexpected<Error>(of_processes.error());
  for (const NeededVariable& variable : of_processes->variables) add(variable);
  return {};
}

Result<void> NeededForRun::add_shares(cuda::GpuHost& host) {
  if (options_.gpu_memory.empty()) return {};
  auto shares = parse_memory_shares(options_.gpu_memory);
  if (!shares) return tl::unexpected<Error>(shares.error());
  if (!host.memory) host.memory = ask_gpu_memory();
  const auto in_bytes = std::count_if(shares->begin(), shares->end(),
                                      [](const MemoryShare& share) { return share.bytes > 0; });
  if (!host.memory && in_bytes > 0 && shares->size() > 1)
    say(options_,
        "whether the shares fit together is not checked: how much memory the GPU has is not known "
        "(--gpu-total 24GiB says it)");
  auto settings =
      memory_settings(*shares, {tree_, *world_.python, world_.distributions, host, variables_});
  if (!settings) return tl::unexpected<Error>(settings.error());
  for (const NeededVariable& variable : settings->variables) add(variable);
  for (const std::string& text : settings->untold) say(options_, "{}", text);
  if (settings->hook.empty()) return {};
  say(options_, "a start-up hook tells {}", settings->hook);
  hook_.emplace_back("COHABIT_GPU_MEMORY", settings->hook);
  return {};
}

std::string root_of(const std::string& module) {
  return module.substr(0, module.find('.'));
}

// Files of packages that the program's imports run and that import one of these.
Result<std::vector<std::string>> NeededForRun::importers_of(
    const std::vector<std::string>& modules) {
  auto program = read_python_program(started_);
  if (!program) {
    say(options_,
        "what the command imports is not known: whether {} can be deferred shows when "
        "it runs",
        fmt::join(modules, ", "));
    return std::vector<std::string>();
  }
  program->environment = variables_;
  const Sequence sequence = plan_request(world_, *program);
  const auto is_deferred = [&](const std::string& name) {
    return std::find(modules.begin(), modules.end(), root_of(name)) != modules.end();
  };
  std::set<std::string> importers, files;
  for (const auto& [importer, name] : sequence.plan->wanted)
    if (is_deferred(name) && !is_deferred(importer)) importers.insert(importer);
  for (const python::PlannedModule& module : sequence.plan->modules)
    if (importers.contains(module.name) && module.path.find("-packages/") != std::string::npos)
      files.insert(module.path);
  return std::vector<std::string>(files.begin(), files.end());
}

// That is no mistake: a package may do without it. A misspelled name is one.
void NeededForRun::say_what_is_not_there(const std::vector<std::string>& modules) {
  std::vector<std::string> known = find_frameworks(world_);
  for (const Distribution& one : world_.distributions.all()) known.push_back(one.name);
  for (const std::string& module : modules) {
    if (finder_of(world_).find_top_level(module)) continue;
    const auto near = nearest_name(module, known);
    say(options_, "--defer: there is no module {} here{}", module,
        near ? fmt::format(" (did you mean {}?)", *near) : "");
  }
}

Result<void> NeededForRun::add_deferred() {
  if (options_.defer.empty()) return {};
  const auto modules = read_module_list(options_.defer);
  if (!modules) return tl::unexpected<Error>(modules.error());
  for (const std::string& module : *modules)
    if (module.find('.') != std::string::npos)
      return fail(fmt::format("--defer takes whole modules: {}, not {}", root_of(module), module));
  say_what_is_not_there(*modules);
  const auto files = importers_of(*modules);
  if (!files) return tl::unexpected<Error>(files.error());
  const auto lines = needed_at_import(world_.python->executable, *modules, *files);
  if (!lines) return tl::unexpected<Error>(lines.error());
  std::map<std::string, std::vector<std::string>> places;  // by module
  for (const std::string& line : *lines)                   // "torch /place.py:3"
    places[line.substr(0, line.find(' '))].push_back(line.substr(line.find(' ') + 1));
  std::vector<std::string> needed;
  for (const auto& [module, files_of] : places)
    needed.push_back(fmt::format("{} cannot be deferred: it is needed at import by {}", module,
                                 fmt::join(files_of, ", ")));
  if (!needed.empty()) return fail(fmt::format("{}", fmt::join(needed, "; ")));
  hook_.emplace_back("COHABIT_DEFER", fmt::format("{}", fmt::join(*modules, ",")));
  return {};
}

Result<void> NeededForRun::add_hook() {
  if (hook_.empty()) return {};
  auto hook = hook_variables(hook_, variables_);
  if (!hook) return tl::unexpected<Error>(hook.error());
  for (VariableChange& change : *hook) {
    note(change);
    changes_.push_back(std::move(change));
  }
  return {};
}

}  // namespace

Result<void> add_needed_variables(const RunOptions& options, const StartedPython& started,
                                  std::vector<VariableChange>& changes) {
  if (options.no_env && options.gpu_memory.empty() && options.defer.empty()) return {};
  return NeededForRun(options, started, changes).add_all();
}

}  // namespace cohabit
