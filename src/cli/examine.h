// What doctor examines: one environment, and processes of it that were recorded or planned.
#pragma once

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/kept_index.h"
#include "cli/kept_plans.h"
#include "cli/kept_words.h"
#include "cli/program.h"
#include "facts/cuda/gpu_host.h"
#include "facts/host/machine.h"
#include "facts/python/distributions.h"
#include "facts/python/interpreter.h"
#include "facts/trace/trace.h"
#include "findings/captures.h"
#include "findings/environment.h"
#include "findings/finding.h"
#include "findings/ownership.h"
#include "imports/finder.h"
#include "imports/plan.h"
#include "imports/plan_cache.h"
#include "report/report.h"
#include "sim/binding_cache.h"
#include "sim/later_opens.h"
#include "world/images.h"

namespace cohabit {

class Progress;

// What is learned of files while processes are planned, simulated and judged: for one thread at a
// time.
struct ProcessTools {
  explicit ProcessTools(const Tree& files) : images(files), captures(images) {}
  IndexedFiles indexed() { return {index_file, images, bindings}; }

  MappedFile index_file;  // before what may read in it
  Images images;
  sim::BindingCache bindings;
  std::optional<sim::LaterOpens> later;  // of processes that are planned; nothing: no Python
  std::optional<python::Finder> finder;
  python::PlanCache plans;
  CaptureFacts captures;
  std::map<std::vector<std::string>, Ownership> ownerships;  // by imports
};

// Facts that all processes of one environment share, and the tools of the thread that has it.
struct World : ProcessTools {
  explicit World(const Tree& files) : ProcessTools(files), tree(files) {}
  // For Lasting. What was read of maps is noted when they are given back.
  bool may_stay() const { return !tree.has_log(); }
  // Waits for what goes on in other threads.
  void settle();

  const Tree& tree;
  std::optional<Interpreter> python;
  Distributions distributions;
  Machine machine;
  // What stands first in sys.path of imports (program.h); nothing: only what is installed counts.
  std::optional<std::string> first_directory;
  std::mutex planned;                      // while several threads plan: of what follows
  std::unique_ptr<KeptPlans> kept;         // of earlier runs; null: none are used
  std::unique_ptr<KeptWords> words;        // likewise, of the tree
  std::unique_ptr<KeptIndex> index;        // likewise, of the world's own images; to be waited for
  std::set<std::string> variables_sought;  // by the code that was planned so far
};

// A simulation from its start to its end, by these tools.
struct Played {
  const ProcessTools* tools = nullptr;
  std::unique_ptr<sim::Simulation> simulation;
};

// One process: what it was asked to import and the calls that it made, or would make.
struct Sequence {
  std::vector<std::string> imports;  // of a program: what its own modules import
  std::string program;               // "python app.py"; empty: the imports are all
  Trace trace;
  std::optional<python::Plan> plan;  // nothing: it was recorded
  // As it went while it was planned. Taken away once, in the thread of these tools
  // (order_plans.h).
  std::shared_ptr<Played> played;
};

// What finds its modules; made when it is first asked for.
python::Finder& finder_of(const World& world, ProcessTools& tools);
inline python::Finder& finder_of(World& world) {
  return finder_of(world, world);
}

// Reads an environment and its distributions; `place` as find_interpreter takes it. No driver of a
// GPU is taken to be there.
// `takes_kept`: begins with what earlier runs have kept of its files, while others are read.
Result<void> find_environment(
    World& world, const std::string& place,
    const PythonVariables& variables = PythonVariables::from_environment(),
    bool takes_kept = false);
// And says on stderr which it is, where the user did not.
Result<void> choose_environment(
    World& world, const std::string& place,
    const PythonVariables& variables = PythonVariables::from_environment(),
    bool takes_kept = false);
// The same for what goes by all of its files: fails where a change of them was interrupted, or goes
// on; choose_environment warns of that.
Result<void> choose_whole_environment(World& world, const std::string& place);
// These modules, and what the user's own ones among them import in turn.
Asked what_is_asked(const World& world, ProcessTools& tools,
                    const std::vector<std::string>& imports);
inline Asked what_is_asked(World& world, const std::vector<std::string>& imports) {
  return what_is_asked(world, world, imports);
}
// What a program's own code may import that its plan does not: it stands in functions, or on
// branches that were not taken.
struct LaterImports {
  std::vector<std::string> modules;
  // All that the own code names and that is installed, frameworks and what has native files, those
  // above too.
  std::vector<std::string> named;
  bool are_open = false;           // and more, which only a running program knows
  bool gives_environment = false;  // starts others with variables of its own choice (env=)
};
LaterImports find_later_imports(const World& world, const python::PlanRequest& program,
                                const python::Plan& plan);
// What earlier runs have kept is taken in another thread: nothing is asked of the world's images
// and bindings before this.
void ready(World& world);
// Keeps what this run has come to know.
void save_kept(World& world);
// From here on processes are examined as on a machine with a GPU: what is opened after the imports
// too. `driver_is_there`: ld.so finds its libraries; else others stand in for them.
Result<void> assume_gpu(World& world, bool driver_is_there);
// The same where this machine has one, and ld.so finds its driver.
Result<void> assume_gpu_that_is_there(World& world, const cuda::GpuHost& host);
// A plan's request, run in a process that is simulated as it goes; the sequence has no name yet.
Sequence plan_request(World& world, ProcessTools& tools, const python::PlanRequest& request);
inline Sequence plan_request(World& world, const python::PlanRequest& request) {
  return plan_request(world, world, request);
}
// What an import would open, in a process that is never started. `environment`: its variables.
Sequence plan_sequence(World& world, ProcessTools& tools, const std::vector<std::string>& imports,
                       const std::map<std::string, std::string>& environment);
// The same if an earlier run has kept the plan, and it holds; nothing else.
std::optional<Sequence> kept_sequence(World& world, ProcessTools& tools,
                                      const std::vector<std::string>& imports,
                                      const std::map<std::string, std::string>& environment);
inline Sequence plan_sequence(World& world, const std::vector<std::string>& imports,
                              const std::map<std::string, std::string>& environment) {
  return plan_sequence(world, world, imports, environment);
}
// The same for a program.
Sequence plan_program(World& world, const Program& program,
                      const std::map<std::string, std::string>& environment);

// Simulates and judges a sequence and adds what comes of it to the report. A finding that is there
// already (one cause, another order) is not added again: the order refers to it.
struct SequenceOutputs {
  std::string loads, bindings;  // files to write; empty: none
};
Result<void> examine_sequence(World& world, const Sequence& sequence, report::Report& report,
                              const SequenceOutputs& outputs = {});

// A recorded run failed and no rule says why (PY301): if the same run, planned, ends with an
// exception, that is told instead.
void explain_by_plan(World& world, const std::function<Sequence()>& plan, report::Report& report);

// The frameworks of this environment, by the module that one imports.
std::vector<std::string> find_frameworks(const World& world);
// The file that makes a directory this environment; one that has none is its interpreter's.
std::string file_of_environment(const World& world);
// What is said of an environment, by its prefix, where there is none and no imports were named.
std::string no_framework_in(const std::string& prefix);
// Each of them alone, then every order of every pair.
std::vector<std::vector<std::string>> orders_of(const std::vector<std::string>& modules);

// Everything that metadata and files say about the environment itself. Asks nothing that a plan
// changes: both may go on at the same time.
void examine_environment(const World& world, report::Report& report, EnvironmentOptions options);
// The same on another core, while the plans are made. The world outlives it.
class AboutEnvironment {
 public:
  AboutEnvironment(const World& world, EnvironmentOptions options);
  // Once, and before anything is judged: one cause is one finding.
  void add_to(report::Report& report);
  void wait() const {
    if (report_.valid()) report_.wait();
  }

 private:
  std::future<report::Report> report_;
};

// What an environment is examined for, in place of a program (cli/asked_modules.h).
struct ExaminedModules {
  std::vector<std::string> paired;  // each order of each two of them is looked at
  std::vector<std::string> alone;   // the others
  // Those of them that found no room among the paired.
  std::vector<std::string> left_alone{};

  std::vector<std::string> all() const;
  // Each of the paired alone, then their pairs, then the others.
  std::vector<std::vector<std::string>> orders() const;
  // What is not known of those that are left alone; empty: all is.
  std::string unpaired() const;
};
// Examines these orders. `about`: may be null; is added to the report before anything is judged.
void examine_orders(World& world, const ExaminedModules& modules,
                    const std::map<std::string, std::string>& environment, report::Report& report,
                    Progress& progress, AboutEnvironment* about = nullptr);

// Of one process: what is broken in the environment and not loaded by it is no error of it.
void soften_what_is_not_loaded(report::Report& report);

// Worst first, ids made anew; orders follow, and forget what is suppressed.
void number_findings(report::Report& report);

}  // namespace cohabit
