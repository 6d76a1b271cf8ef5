// What the libraries of a simulated process open in their constructors and after the imports, in
// phases: imports/later_opens.h has where that is known from.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "imports/later_opens.h"
#include "sim/simulation.h"

namespace cohabit::sim {

// An open that happens, or would happen with a GPU, at a phase.
struct LaterOpen {
  python::Phase phase = python::Phase::kUse;
  const python::LaterRow* row = nullptr;  // null: a part of its own, of which no row speaks
  ObjectId opener = kNone;
  python::Attempts attempts;  // names, as far as they were tried
  std::string own;            // the file of that name among the opener's own; empty: there is none
  ObjectId object = kNone;    // what it got
  std::string error;          // ld.so's, of the last name
  std::vector<SearchStep> search;  // for it
};

// What distributions say about a file.
struct OpenerFacts {
  std::string version;  // "9.28.0.42"
  std::string cuda;     // "cuda12"
};

// Shared by all processes over the same files: what each library opens is worked out once.
class LaterOpens : public ConstructorOpens {
 public:
  using Facts = std::function<OpenerFacts(const std::string& path)>;
  // `gpu`: whether a driver is there, or assumed.
  LaterOpens(bool gpu, Facts facts) : gpu_(gpu), facts_(std::move(facts)) {}

  // One that knows as much of distributions, and no library: for other images.
  LaterOpens afresh() const { return {gpu_, facts_}; }
  bool has_gpu() const { return gpu_; }
  void assume_gpu() {
    gpu_ = true;
    known_.clear();  // rows that want a GPU were left out
  }
  std::vector<Open> opens_of(const Simulation& simulation, ObjectId id) override;
  // Goes on with a process at whose end `calls` were made; adds the calls that it makes.
  // `is_asked`: whether the process was asked for the distribution of this object.
  using IsAsked = std::function<bool(ObjectId)>;
  std::vector<LaterOpen> play(python::Phase phase, Simulation& simulation,
                              std::vector<LoaderCall>& calls, const IsAsked& is_asked);
  // "9.1.0" of its name, its soname or its distribution, whichever says most; empty: unknown.
  std::string version_of(const Simulation& simulation, ObjectId id) const;

 private:
  struct Intent {
    const python::LaterRow* row;
    python::Phase phase;
    python::Attempts attempts;
    std::string own;
  };
  struct Known {
    std::vector<Intent> intents;
    bool has_rows = false, has_parts = false;
  };
  python::Opener opener_of(const Simulation& simulation, ObjectId id) const;
  void find_rows(const Simulation& simulation, ObjectId id, Known& known) const;
  void find_parts(const Simulation& simulation, ObjectId id, Known& known) const;
  std::vector<Intent> intents_of(const Simulation& simulation, ObjectId id, python::Phase phase);

  bool gpu_;
  Facts facts_;
  std::unordered_map<ImageId, Known> known_;
};

}  // namespace cohabit::sim
