// Simulation: what ld.so would do, given how a process starts and the calls it makes.
//
// The state is glibc's own (link maps, scopes, search lists, reference counts), the steps are those
// of _dl_map_object, _dl_map_object_deps, dl_open_worker, _dl_relocate_object, _dl_lookup_symbol_x
// and _dl_close_worker, without the memory they map: docs/design/simulation.md. Nothing is
// executed, so constructors run only as far as the trace tells what they called.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "facts/host/machine.h"
#include "facts/trace/trace.h"
#include "sim/binding_cache.h"
#include "sim/bindings.h"
#include "sim/rules.h"
#include "world/images.h"

namespace cohabit::sim {

enum class ObjectType : uint8_t { kExecutable, kLibrary, kLoaded };  // lt_executable, ...
enum class How : uint8_t { kProgram, kLoader, kPreload, kNeeded, kDlopen };

// One place that was considered for a name, in order.
struct SearchStep {
  std::string path;
  std::string because;  // "RUNPATH of /x/liby.so", "LD_LIBRARY_PATH", "ld.so.cache", ...
  std::string outcome;  // "found", "no such file", "wrong ELF class", ...
};

// A search list in an object's scope: that object's searchlist, or the object alone (DT_SYMBOLIC).
struct ScopeElement {
  ObjectId owner;
  bool symbolic;
  bool operator==(const ScopeElement&) const = default;
};

// A link map.
struct Object {
  ImageId image = kNone;
  std::string name;                   // l_name: the path it was opened by; "" for the program
  std::string requested;              // the name asked for when it was mapped
  std::vector<std::string> names;     // l_libname
  uint64_t name_bits = ~uint64_t{0};  // of each of its names and its soname, the bit that name_bit
                                      // (state.h) gives it
  std::string origin;                 // $ORIGIN
  int ns = 0;
  ObjectType type = ObjectType::kLoaded;
  How how = How::kNeeded;
  ObjectId by = kNone;      // who needed or opened it
  ObjectId loader = kNone;  // l_loader: whose RPATH counts
  ObjectId real = kNone;    // l_real: differs for ld.so mirrored into another namespace
  uint32_t call = kNone;    // index of the call that mapped it; kNone: start-up
  std::vector<ScopeElement> scope;
  std::vector<ObjectId> search_list;  // itself and its dependencies, breadth first
  bool has_search_list = false;
  std::vector<ObjectId> init_order;  // l_initfini
  bool has_init_order = false;
  std::vector<ObjectId> relocation_dependencies;  // l_reldeps
  std::vector<SearchStep> search;                 // how it was found, when search traces are kept
  int direct_open_count = 0;
  bool soname_added = false;
  bool relocated = false;
  bool lazy = false;  // its jump slots wait for their first call
  bool versions_checked = false;
  bool init_called = false;
  bool global = false;
  bool nodelete_active = false;
  bool nodelete_pending = false;
  bool removed = false;   // unmapped, or on its way
  bool unlisted = false;  // before the first object of its namespace, where no walk begins
  ObjectId twin =
      kNone;  // an unlisted object of the same file, which was mapped again for this one
  bool unmapped = false;
  bool held = false;               // the trace says that it stayed after its last dlclose
  int64_t static_tls_offset = -1;  // -1: not in the static block
  int64_t static_tls_start = 0;    // AArch64: where its part began, padding included
};

// A reference without definition: weak (the loader goes on) or an error.
struct MissingSymbol {
  ObjectId from;
  uint32_t reference;
  bool weak;
  bool lazy;  // would only matter when called
  uint32_t call;
};

struct CallResult {
  ObjectId object = kNone;  // kNone with an empty error: NOLOAD found nothing
  bool failed = false;
  std::string error;  // ld.so's own message, e.g. "libx.so: cannot open shared object file: ..."
  std::vector<SearchStep> search;  // for a name that was not found
};

class Simulation;

// What constructors open, where no trace tells it. The calls' callers are not looked at: the object
// is the caller.
class ConstructorOpens {
 public:
  virtual ~ConstructorOpens() = default;
  // Each is a list of names of which the first that can be opened ends it.
  struct Open {
    std::vector<std::string> names;
    int flags = 0;
  };
  virtual std::vector<Open> opens_of(const Simulation& simulation, ObjectId id) = 0;
};

struct Options {
  RuleSet rules;                       // tests switch single rules off
  bool keep_search_steps = false;      // strings for every place looked at: costs time
  bool absent_subdirectories = false;  // glibc-hwcaps folders that are not there are places too
  bool lazy_at_load = true;            // write lazy bindings as if called right after loading
  // Shared by simulations over the same Images with the same rules and LD_DYNAMIC_WEAK; not owned.
  BindingCache* cache = nullptr;
  ConstructorOpens* constructors = nullptr;  // of a process that was not recorded; not owned
};

class Simulation {
 public:
  Simulation(Images& images, const Machine& machine, StartFacts start, Options options);
  Simulation(Images& images, const Machine& machine, StartFacts start)
      : Simulation(images, machine, std::move(start), Options()) {}
  ~Simulation();
  // Another process that has come as far, over the same images. Not within a call.
  std::unique_ptr<Simulation> copy();

  // Start-up of the process. False: ld.so would refuse to start it; start_error() says why.
  bool start();
  // Empty: it starts.
  const std::string& start_error() const { return start_error_; }
  // What ld.so says after that before it ends: of missing versions all.
  const std::vector<std::string>& more_start_errors() const { return more_start_errors_; }

  // Plays a whole recorded sequence, nesting included. Calls start() if that was not done.
  void run(const std::vector<LoaderCall>& calls);
  // Plays what follows those that were played; the first of these is made inside none of them.
  void go_on(const std::vector<LoaderCall>& calls);

  // Plays the last of these calls; the others were played.
  CallResult run_last(const std::vector<LoaderCall>& calls);

  // Single calls (depth 0). The caller is an object of this simulation; kNone: the program.
  CallResult dlopen(std::string_view name, int flags, ObjectId caller = kNone);
  CallResult dlmopen(int64_t link_map_id, std::string_view name, int flags,
                     ObjectId caller = kNone);
  CallResult dlclose(ObjectId object);
  // First call through the PLT of `object` to `symbol`: binds it if it still waits.
  void call_lazily(ObjectId object, std::string_view symbol);

  const Images& images() const { return images_; }
  const std::vector<Object>& objects() const { return objects_; }
  const std::vector<ObjectId>& load_order() const { return load_order_; }  // link maps as generated
  const Bindings& bindings() const { return bindings_; }
  const std::vector<MissingSymbol>& missing() const { return missing_; }
  // Where ld.so fails an assertion of its own or crashes; at most one of an object.
  // The simulation goes on.
  struct Assertion {
    ObjectId object;
    std::string what;
  };
  const std::vector<Assertion>& assertions() const { return assertions_; }
  const std::vector<CallResult>& results() const { return results_; }  // one per call of run()
  const std::vector<std::string>& problems() const { return problems_; }
  // The live object of a namespace by its l_name, or by the file it is; kNone if none.
  ObjectId find_object(const std::string& name, int ns = 0) const;
  // Where the object says that its libraries are: its own directory, then those of its RPATH or
  // RUNPATH; not where the machine's are.
  std::vector<std::string> own_directories(ObjectId id) const;
  // Whether dlsym finds a symbol in what a dlopen gave. Nothing: it gave no object.
  std::optional<bool> has_symbol(const CallResult& opened, std::string_view name) const;
  // The definition that a reference gets in a scope made of these objects, in this order (findings
  // ask what an object's own dependencies would have provided). For many references over one scope
  // enter it once. Only live objects are found.
  struct Found {
    ObjectId object = kNone;
    uint32_t symbol = 0;
    bool unique = false;       // STB_GNU_UNIQUE: the table of unique symbols has the last word
    bool unversioned = false;  // its object has no versions at all
  };
  Found lookup_in(const std::vector<ObjectId>& scope, const Reference& reference, int ns = 0) const;
  Found lookup_in(const std::vector<ObjectId>& scope, ObjectId from, uint32_t reference,
                  RefKind kind) const;  // slow: finds the reference first
  void enter_lookup_scope(const std::vector<ObjectId>& scope) const;
  Found lookup_entered(const Reference& reference, int ns = 0) const;
  const elf::Object& elf(ObjectId id) const { return images_[objects_[id].image].elf; }

  struct State;

 private:
  Simulation(const Simulation& other);

  friend struct State;
  Images& images_;
  const Machine& machine_;
  StartFacts start_;
  Options options_;
  std::string start_error_;
  std::vector<std::string> more_start_errors_;
  std::vector<Object> objects_;
  std::vector<ObjectId> load_order_;
  Bindings bindings_;
  std::vector<MissingSymbol> missing_;
  std::vector<Assertion> assertions_;
  std::vector<CallResult> results_;
  std::vector<std::string> problems_;
  std::unique_ptr<State> state_;
};

}  // namespace cohabit::sim
