// The import plan: what a Python program opens on import, in order, without running it.
//
// An abstract interpreter runs the program's modules (docs/design/imports.md). What it cannot know
// it marks, and it goes the way that most programs go.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/python/distributions.h"
#include "imports/module_kind.h"
#include "world/images.h"

namespace cohabit::python {

// What a dlopen would do: the simulation, or something simpler in tests. The plan goes on from the
// answer, since programs catch the error.
class NativeLoader {
 public:
  virtual ~NativeLoader() = default;
  // Nothing: it worked; else ld.so's message. `caller`: path of the object that calls dlopen, ""
  // for the interpreter itself (libpython or the executable).
  virtual std::optional<std::string> open(const std::optional<std::string>& name, int flags,
                                          const std::string& caller) = 0;
  // Whether dlsym finds the symbol in what the open of this number (from 0) gave. Nothing: not
  // known.
  virtual std::optional<bool> has_symbol(size_t /*open*/, std::string_view /*name*/) {
    return std::nullopt;
  }
  // Paths of what the open of this number gave and of all libraries that it needs. Nothing: not
  // known.
  virtual std::optional<std::vector<std::string>> closure_of(size_t /*open*/) {
    return std::nullopt;
  }
};

enum class OpenCause : uint8_t {
  kExtension,  // a module of Python
  kCall,       // ctypes and other functions that open what they are told
};

struct AskedSymbol {
  std::string name;
  bool is_there = false;
};

struct PlannedOpen {
  std::optional<std::string> name;
  int flags = 0;
  std::string caller;
  OpenCause cause = OpenCause::kExtension;
  std::string module;  // that is imported, or whose code makes the call
  std::string file;    // the source that asks for it
  uint32_t line = 0;
  std::string error;                 // empty: it works
  std::vector<AskedSymbol> symbols;  // that the program asked of it by name, each once
};

struct PlannedModule {
  std::string name;
  ModuleKind kind = ModuleKind::kSource;
  std::string path;
  std::string importer;  // module whose statement brings it; empty: start-up or the program
  uint32_t line = 0;     // in the importer
};

// The modules of a plan. Copies share them: plans of single frameworks are joined to those of all
// orders, and a framework has thousands.
class PlannedModules {
  using Shared = std::vector<std::shared_ptr<const PlannedModule>>;

 public:
  class Iterator {
   public:
    explicit Iterator(Shared::const_iterator at) : at_(at) {}
    const PlannedModule& operator*() const { return **at_; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    Shared::const_iterator at_;
  };

  size_t size() const { return modules_.size(); }
  const PlannedModule& operator[](size_t i) const { return *modules_[i]; }
  Iterator begin() const { return Iterator(modules_.begin()); }
  Iterator end() const { return Iterator(modules_.end()); }
  void reserve(size_t count) { modules_.reserve(count); }
  void push_back(PlannedModule module) {
    modules_.push_back(std::make_shared<const PlannedModule>(std::move(module)));
  }
  // The other's module at i.
  void share(const PlannedModules& other, size_t i) { modules_.push_back(other.modules_[i]); }

 private:
  Shared modules_;
};

// A point at which only a running program knows how it goes on.
struct Undecided {
  std::string file;
  uint32_t line = 0;
  std::string what;
  bool may_fail =
      false;  // the import, on one of the branches, of a library that the loader refuses
};

// A program runs as __main__: what is imported, or a text, or a file, or (-m) a module.
struct PlanRequest {
  std::vector<std::string> imports;      // "a", "b": import a; import b
  std::string code;                      // a program's text
  std::string code_file;                 // its name; without a text: the file to run
  std::string run_module;                // python -m NAME
  std::optional<std::string> directory;  // what the way of starting puts first in sys.path
  std::vector<std::string> arguments;    // sys.argv after the program
  std::map<std::string, std::string> environment;  // os.environ
  bool assume_gpu = false;
};

// What happened while the program ran, in order: enough to tell how it goes in a process in which
// other modules are loaded already (join.h).
struct PlanEvent {
  enum Kind : uint8_t {
    kEnter,    // the code of modules[index] starts...
    kLeave,    // ...and ends
    kOpen,     // opens[index]
    kMissing,  // the program asked for the module sought[index], which is not there
    kVariable  // the program asked for the environment variable sought[index]
  };
  Kind kind;
  uint32_t index;
};

// An environment variable that the user's own code set to another value.
struct PlannedVariable {
  std::string name;
  std::string file;  // empty: the text of the program
  uint32_t line = 0;
  // An installed module asked for it before; empty: none did.
  std::string asked_by;
  uint32_t asked_line = 0;
  uint32_t opens_before = 0;  // how many of the plan's opens came before
};

// What is told of a program.
struct PlannedRun {
  PlannedModules modules;  // in the order in which their code starts
  // Who imports which top-level module, whether it was loaded before or not; each pair once.
  std::vector<std::pair<std::string, std::string>> wanted;
  std::vector<PlannedOpen> opens;
  std::vector<Undecided> undecided;
  // Errors that the program would raise and not catch, by what is known; it was followed further,
  // because a gap in what is known is likelier.
  std::vector<Undecided> raises;
  std::string failure;        // "ModuleNotFoundError: No module named 'x'": ends the program
  std::string failure_cause;  // likewise the error that it was raised for, in its handler
  std::string failure_file;   // where it was raised
  uint32_t failure_line = 0;
  bool failure_declared = false;  // by a check of versions in the program itself
  bool failure_is_exit = false;   // no error: a module asks for the end of the process
  // If that is a module that is not there: the top-level names that are, sorted.
  std::vector<std::string> importable;
  std::vector<std::string> problems;  // files that cannot be read or parsed, limits that were met
  std::vector<PlannedVariable> variables_changed;
};

// What another program is joined to it by (join.h).
struct PlanTrail {
  std::vector<PlanEvent> events;  // start-up left out
  std::vector<std::string> sought;
  std::vector<std::string> loaded;         // sys.modules at the end, sorted
  std::vector<std::string> variables_set;  // names of environment variables, sorted
  std::vector<std::string> path_added;     // to the end of sys.path
  bool changes_imports = false;            // sys.path changed otherwise, or the flags of dlopen
};

struct Plan : PlannedRun, PlanTrail {};

class Finder;
struct PlanCache;  // plan_cache.h

// Runs on a thread of its own with a deep stack: Python's nesting is the program's to choose.
Plan make_plan(Finder& finder, Images& images, const Distributions& distributions,
               NativeLoader& loader, const PlanRequest& request, PlanCache& cache);

}  // namespace cohabit::python
