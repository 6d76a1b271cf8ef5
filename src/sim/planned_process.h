// A Python process that was never started: the import plan's opens, simulated as they come.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "facts/python/interpreter.h"
#include "imports/plan.h"
#include "sim/simulation.h"

namespace cohabit::sim {

// How the process of this interpreter would start. `environment`: all of its variables, of which
// the loader's are taken.
StartFacts start_of(const Interpreter& python, const Machine& machine,
                    const std::map<std::string, std::string>& environment);

// Answers the plan's opens from a simulation, and keeps them as a trace: what that replays to is
// the simulation as it stands.
class PlannedProcess : public python::NativeLoader {
 public:
  explicit PlannedProcess(Simulation& simulation);

  std::optional<std::string> open(const std::optional<std::string>& name, int flags,
                                  const std::string& caller) override;
  std::optional<bool> has_symbol(size_t open, std::string_view name) override;
  std::optional<std::vector<std::string>> closure_of(size_t open) override;
  const std::vector<LoaderCall>& calls() const { return calls_; }
  const Simulation& simulation() const { return simulation_; }

 private:
  ObjectId find_caller(const std::string& path);

  Simulation& simulation_;
  std::vector<LoaderCall> calls_;
  ObjectId python_ = kNone;  // libpython, or the program
};

// Whether the libraries have the symbols that the program asked them for as it supposed. Of the
// whole process, at its end: what it has by then and had not when it was asked counts as well.
bool has_as_planned(const python::Plan& plan, const Simulation& simulation);

}  // namespace cohabit::sim
