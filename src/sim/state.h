// The working state behind a Simulation. Functions are named after what glibc's do; the file that
// holds each says which one.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "facts/trace/loader_command.h"
#include "sim/simulation.h"

namespace cohabit::sim {

constexpr int kRtldLazy = 1, kRtldNow = 2, kRtldNoload = 4, kRtldDeepbind = 8, kRtldGlobal = 0x100,
              kRtldNodelete = 0x1000, kRtldSprof = 0x40000000;
constexpr int kRtldKnown = kRtldLazy | kRtldNow | kRtldNoload | kRtldDeepbind | kRtldGlobal |
                           kRtldNodelete | kRtldSprof;  // dlopen_doit of dlfcn/dlopen.c
constexpr const char* kVdso = "linux-vdso.so.1";
constexpr int kMaxNamespaces = 16;
constexpr int64_t kNewNamespace = -1;     // LM_ID_NEWLM
constexpr int64_t kCallerNamespace = -2;  // __LM_ID_CALLER: dlopen, not dlmopen

// One namespace (link map list) of dlmopen; 0 is the base.
struct Namespace {
  bool used = false;
  std::vector<ObjectId> loaded;    // link-map order
  std::vector<ObjectId> by_image;  // live object of an image (the last, see twin), kNone if none
  bool has_twins = false;
  struct Unique {
    ObjectId object;
    uint32_t symbol;
  };
  std::unordered_map<NameId, Unique> unique;  // STB_GNU_UNIQUE definitions in force
};

// A directory list of one origin (an RPATH, LD_LIBRARY_PATH, ...).
struct SearchPath {
  std::string because;
  std::vector<std::string> directories;   // each "" or ending with "/"
  mutable std::vector<char> absent = {};  // by directory: known not to be there
};

struct FoundFile {
  ImageId image = kNone;
  std::string path;  // as ld.so writes it: directory + name
};

// What an opened object still has to do when dlopen's first part is over.
struct OpenWork {
  ObjectId object = kNone;
  int flags = 0;
  bool run_constructors = false;
};

// Of the 64 bits of an object's name_bits. Most objects have none of a name's, so that it need not
// be compared with theirs: of two hundred objects one is looked for thousands of times.
inline uint64_t name_bit(std::string_view name) {
  return uint64_t{1} << (std::hash<std::string_view>{}(name) % 64);
}

// What no address space can hold (the kernel's TASK_SIZE).
bool is_too_long(uint64_t length, const elf::Object& file);

// What a process has come to. A copy goes on as this would (Simulation::copy).
struct LoaderState {
  std::vector<Namespace> namespaces = std::vector<Namespace>(kMaxNamespaces);
  bool started = false;
  bool lazy_allowed = true;  // GLRO(dl_lazy): no LD_BIND_NOW
  bool dynamic_weak = false;
  bool access_refused = false;  // the error of bind is ld.so's whole line
  LoaderOptions loader_options;
  ObjectId program = kNone;
  ObjectId rtld = kNone;
  ObjectId init_first = kNone;            // GL(dl_initfirst)
  std::vector<SearchStep> failed_search;  // of the last name that was not found
  size_t kept_steps = 0;                  // of all of them
  int last_errno = 0;                     // ld.so's errno, which a failed search reports
  bool other_class = false;               // the last search met a file of another class
  uint32_t call = kNone;
  std::string cwd;

  std::unordered_map<ObjectId, SearchPath> rpaths, runpaths;
  std::optional<SearchPath> library_path;
  std::vector<std::string> subdirectories;  // hwcaps, best first, "" last

  // Objects whose relationship to the object being relocated is already settled.
  std::vector<uint32_t> dependency_stamp;
  uint32_t dependency_round = 0;

  std::set<std::pair<ObjectId, uint32_t>> bound_lazily;

  int64_t tls_used = 0, tls_limit = 0, tls_align = 64, tls_optional = 512;
};

// Where each object stands in the scope being searched: of no meaning between two searches.
struct LookupScratch {
  std::vector<uint32_t> position, position_stamp;
  uint32_t stamp = 0, next_position = 0;
  std::vector<ObjectId> entered;  // the scope, in order
  // By image: where lookups note who defines the names.
  std::vector<bool>* definers = nullptr;
};

struct Simulation::State : LoaderState, LookupScratch {
  explicit State(Simulation& simulation) : sim(simulation) {}
  // Goes on where the other has come to.
  State(Simulation& simulation, const LoaderState& other) : LoaderState(other), sim(simulation) {}

  // search.cc
  Result<FoundFile> search(const std::string& name, ObjectId loader,
                           std::vector<SearchStep>* steps);
  std::string expand(const std::string& text, ObjectId object);

  // load.cc
  struct MapRequest {
    std::string name;
    ObjectId loader = kNone;  // whose RPATH or RUNPATH counts
    ObjectType type = ObjectType::kLibrary;
    How how = How::kNeeded;
    bool noload = false;
    bool deepbind = false;
    bool from_dlopen = false;  // __RTLD_DLOPEN
    int ns = 0;
  };
  Result<ObjectId> map_object(const MapRequest& request);
  Result<void> map_dependencies(ObjectId id, const std::vector<ObjectId>& preloads,
                                const MapRequest& base);
  Result<void> check_version_record(ObjectId id) const;
  Result<void> check_versions(ObjectId id);
  std::vector<std::string> missing_versions(ObjectId id);  // as ld.so says it
  Result<void> check_relr(ObjectId id) const;
  Result<void> protect_relro(ObjectId id) const;
  void note_assertion(ObjectId id, std::string what);
  void check_version_is_there(ObjectId from, const Reference& reference, const Found& found);
  Result<void> check_cpu_level(ObjectId root);
  ObjectId add_object(ImageId image, const std::string& path, const MapRequest& request);
  bool start();

  // sort.cc
  void sort_maps(std::vector<ObjectId>& maps, bool skip_first, bool for_close);

  // relocate.cc
  Result<void> relocate(ObjectId id, bool lazy);
  Result<void> relocate_libc_first(int ns, bool lazy);
  void bind_waiting(ObjectId id);  // the jump slots that wait
  Result<void> bind(ObjectId from, uint32_t slot, bool lazy);
  void note_binding(ObjectId from, uint32_t slot, RefKind kind, Found found, bool depends_on_more);
  std::vector<uint32_t> missing_slots(ReferenceList references, size_t first_missing) const;

  // lookup.cc
  ObjectId first_in_scope(ObjectId newest) const;
  // `newest`: as dlsym asks (DL_LOOKUP_RETURN_NEWEST).
  Found lookup(const Reference& reference, int ns, bool newest = false) const;
  void enter_scope(ObjectId id);
  void enter_list(const std::vector<ObjectId>& objects);

  // open.cc
  Result<OpenWork> open_begin(const std::string& name, int flags, ObjectId caller, int64_t ns);
  Result<OpenWork> open_mapped(ObjectId object, int flags);
  void run_constructors_until(OpenWork& work, const std::string& constructor);
  void open_in_constructor(ObjectId id);
  void open_end(const OpenWork& work);
  void make_global(ObjectId id);

  // close.cc
  void close(ObjectId id);
  void believe(ObjectId id, bool unmapped);
  void collect(int ns);

  // tls.cc
  void lay_out_static_tls();
  bool allocate_static_tls(ObjectId id, bool optional);
  void release_static_tls(const std::vector<ObjectId>& removed);

  // simulation.cc
  size_t play(const std::vector<LoaderCall>& calls, size_t at);
  CallResult single_open(std::string_view name, int flags, ObjectId caller, int64_t ns);

  const elf::Object& elf(ObjectId id) const { return sim.elf(id); }
  Object& object(ObjectId id) { return sim.objects_[id]; }
  const Object& object(ObjectId id) const { return sim.objects_[id]; }
  // This version of glibc 2 or a newer one, or an unknown one.
  bool since(int minor) const {
    return sim.machine_.glibc == GlibcVersion{} || sim.machine_.glibc >= GlibcVersion{2, minor};
  }
  bool rule(Rule rule) const { return sim.options_.rules[rule]; }
  std::string display_name(ObjectId id) const;  // DSO_FILENAME
  std::optional<std::string> variable(const char* name) const;

  Simulation& sim;

 private:
  bool ignores_rpath(ObjectId id) const;
  const SearchPath& rpath_of(ObjectId id);
  const SearchPath& runpath_of(ObjectId id);
  SearchPath decompose(const std::string& list, std::string_view separators, ObjectId object,
                       std::string because);
  enum class DirectoryResult { kFound, kGoOn, kGiveUp };
  Result<DirectoryResult> try_path(const SearchPath& path, const std::string& name,
                                   FoundFile& found, std::vector<SearchStep>* steps);
  Result<bool> try_file(const std::string& path, const std::string& because, FoundFile& found,
                        std::vector<SearchStep>* steps);
  Result<bool> try_rpaths(const std::string& name, ObjectId loader, FoundFile& found,
                          std::vector<SearchStep>* steps);
  Result<bool> try_cache(const std::string& name, ObjectId loader, FoundFile& found,
                         std::vector<SearchStep>* steps);
  std::string absolute(const std::string& path) const;

  ObjectId find_loaded(const std::string& name, int ns);
  bool name_matches(const std::string& name, ObjectId id) const;
  void add_name(ObjectId id, const std::string& name);
  Result<void> check_loadable(ImageId image, const MapRequest& request);
  void set_scope(ObjectId id, const MapRequest& request);
  struct Walk;
  Result<void> walk_dependencies(Walk& walk, const MapRequest& base);
  MapRequest request_of(ObjectId from, const std::string& name, const MapRequest& base) const;
  Result<void> add_needed(Walk& walk, size_t at, const std::string& name, const MapRequest& base,
                          std::vector<ObjectId>& needed);
  bool is_endless(Walk& walk, ObjectId current);
  Result<bool> add_filtee(Walk& walk, size_t& at, int64_t tag, const std::string& name,
                          const MapRequest& base, std::vector<ObjectId>& needed);
  void finish_dependencies(const Walk& walk);
  void move_before(ObjectId moved, ObjectId anchor);

  Result<int> choose_namespace(ObjectId caller, int64_t wanted) const;
  static MapRequest open_request(const std::string& name, int flags, ObjectId caller,
                                 int64_t ns_wanted);
  Result<void> map_opened(ObjectId id, bool deepbind, size_t first_new);
  Result<void> relocate_opened(ObjectId id, bool lazy);
  void activate_nodelete(int ns);
  void update_scopes(ObjectId id);

  bool through_loader() const { return !sim.start_.loader_command.empty(); }
  void start_options();
  bool start_program();
  void start_loader();
  void start_search_paths();
  std::vector<ObjectId> preload_all();
  void place_loader();
  bool start_relocation();
  void find_loader_malloc();
  bool refuse(const std::string& message);
  void apply_close(const LoaderCall& call, CallResult& result);
  ObjectId caller_of(const LoaderCall& call);

  void traverse(ObjectId id, bool relocation_dependencies, bool& met, std::vector<char>& visited,
                std::vector<ObjectId>& order) const;
  void sort_depth_first(std::vector<ObjectId>& maps, bool keep_first, bool for_close);
  void sort_original(std::vector<ObjectId>& maps, bool skip_first, bool for_close);

  struct Candidate {
    uint32_t symbol;
    bool weak;
    bool unique;
    bool unversioned;
  };
  std::optional<Candidate> match(uint32_t& definition, const Reference& reference,
                                 bool newest) const;
  Found take_unique(NameId name, Found found, ObjectId from, RefKind kind, uint32_t reference,
                    int ns);
  void add_dependency(ObjectId from, ObjectId to, bool for_relocation);
  Result<void> place_tls(ObjectId provider, RefKind kind);
  Result<void> bind_all(ObjectId id, bool lazy);
  Result<void> bind_again(ObjectId id, const BindingCache::Relocation& earlier);
  std::vector<ImageId> entered_images() const;

  Result<void> check_indirect_access(ObjectId from, const Reference& reference, Found found);
  Result<void> check_versions_of(ObjectId id, const elf::VersionNeed& need);
  std::vector<ObjectId> mark_used(int ns) const;
  void update_scope_after_close(ObjectId id, const std::vector<char>& used);
  void unmap(const std::vector<ObjectId>& removed, int ns);

  friend class Simulation;
};

}  // namespace cohabit::sim
