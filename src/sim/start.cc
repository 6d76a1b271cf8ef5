// Start-up of a process: dl_main of elf/rtld.c. The program, LD_PRELOAD, /etc/ld.so.preload, all
// DT_NEEDED breadth-first, relocation in reverse, and ld.so itself once more at the end.
#include <fmt/format.h>

#include <algorithm>

#include "base/paths.h"
#include "sim/state.h"

namespace cohabit::sim {
namespace {

std::vector<std::string> split(const std::string& text, std::string_view separators) {
  std::vector<std::string> items;
  size_t begin = 0;
  while (begin <= text.size()) {
    size_t end = text.find_first_of(separators, begin);
    if (end == std::string::npos) end = text.size();
    if (end > begin) items.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

}  // namespace

std::optional<std::string> Simulation::State::variable(const char* name) const {
  for (const auto& [key, value] : sim.start_.environment)
    if (key == name) return value;
  return std::nullopt;
}

bool Simulation::State::refuse(const std::string& message) {
  if (sim.start_error_.empty()) {
    sim.start_error_ = message;
  } else {
    sim.more_start_errors_.push_back(message);
  }
  return false;
}

// What stood between ld.so and the program, where the program was started through ld.so.
void Simulation::State::start_options() {
  const StartFacts& start = sim.start_;
  loader_options = parse_loader_command(start.loader_command);
  const auto say = [&](const std::string& what) {
    sim.problems_.push_back("the program was started through " + start.executable + what);
  };
  if (loader_options.audit) say(", whose option --audit is not simulated");
  if (!variable("LD_AUDIT").value_or("").empty() && !start.secure)
    sim.problems_.emplace_back("LD_AUDIT is set: what auditors load and change is not simulated");
  if (!variable("LD_PROFILE").value_or("").empty() && !start.secure)
    sim.problems_.emplace_back(
        "LD_PROFILE is set: ld.so then binds calls lazily, whatever LD_BIND_NOW says; not "
        "simulated");
  const Tree& tree = sim.images_.tree();
  const auto executed = tree.stat(start.executable), loader = tree.stat(sim.machine_.loader_path);
  if (!through_loader() && executed && loader && executed->id == loader->id)
    say(", whose options are not in the trace");
  if (through_loader() && start.loader_command.back().find('/') == std::string::npos)
    say(" by a name without a slash, which is not searched for here");
}

bool Simulation::State::start_program() {
  const std::string& path = sim.start_.program;
  const Images::Probe& probe = sim.images_.open(absolute(path), sim.machine_.elf_machine);
  if (probe.image == kNone)
    return refuse(fmt::format("cannot start {}: it is not a program for this machine{}{}", path,
                              probe.header.message.empty() ? "" : ": ", probe.header.message));
  const Image& image = sim.images_[probe.image];
  if (image.elf.interpreter.empty())
    return refuse(path + " is not dynamically linked, so it has no dynamic loader to simulate");
  if (image.elf.names_auditors)
    sim.problems_.push_back(path + " names auditors (DT_AUDIT): what they do is not simulated");
  Object main;
  main.image = probe.image;
  main.names = {""};
  main.type = ObjectType::kExecutable;
  main.how = How::kProgram;
  // The kernel gives ld.so the resolved path, so a link (a venv's bin/python) does not count. It
  // did where ld.so opened the program itself (glibc bug 25263).
  const bool resolved = !through_loader() || since(42);
  main.origin = directory_of(resolved ? image.real_path : absolute(path));
  main.real = program = 0;
  main.scope = {{0, false}};
  sim.objects_.push_back(std::move(main));
  namespaces[0].used = true;
  namespaces[0].loaded = {program};
  namespaces[0].by_image.resize(probe.image + 1, kNone);
  namespaces[0].by_image[probe.image] = program;
  sim.images_.index(probe.image);
  return true;
}

// ld.so is mapped by the kernel. It is second in the list, so that names find it.
void Simulation::State::start_loader() {
  const std::string interpreter(sim.images_[object(program).image].elf.interpreter);
  std::string path = through_loader() ? sim.start_.loader_command[0] : interpreter;
  const Images::Probe* probe = &sim.images_.open(absolute(path), sim.machine_.elf_machine);
  if (probe->image == kNone && !sim.machine_.loader_path.empty()) {
    path = sim.machine_.loader_path;
    probe = &sim.images_.open(path, sim.machine_.elf_machine);
  }
  if (probe->image == kNone) {
    sim.problems_.push_back("the program's interpreter " + interpreter + " cannot be read");
    return;
  }
  MapRequest request;
  request.name = interpreter.empty() ? path : interpreter;
  request.how = How::kLoader;
  rtld = add_object(probe->image, path, request);
  object(rtld).relocated = true;
  if (const auto soname = elf(rtld).soname) add_name(rtld, std::string(*soname));
}

void Simulation::State::start_search_paths() {
  for (const std::string& level : sim.machine_.hwcaps)
    if (rule(Rule::kHwcaps)) subdirectories.push_back("glibc-hwcaps/" + level + "/");
  if (rule(Rule::kHwcaps))
    subdirectories.insert(subdirectories.end(), sim.machine_.legacy_hwcaps.begin(),
                          sim.machine_.legacy_hwcaps.end());
  subdirectories.emplace_back();
  const bool given = loader_options.library_path.has_value();
  const auto list = given ? loader_options.library_path : variable("LD_LIBRARY_PATH");
  if (list && !list->empty() && !sim.start_.secure && rule(Rule::kLibraryPath))
    library_path = decompose(*list, ":;", program, given ? "--library-path" : "LD_LIBRARY_PATH");
}

std::vector<ObjectId> Simulation::State::preload_all() {
  std::vector<std::string> names;
  if (const auto list = variable("LD_PRELOAD"); list && !sim.start_.secure)
    names = split(*list, " :");
  if (loader_options.preload)
    for (std::string& name : split(*loader_options.preload, " :")) names.push_back(std::move(name));
  names.insert(names.end(), sim.machine_.preload_file.begin(), sim.machine_.preload_file.end());
  const size_t before = namespaces[0].loaded.size();
  for (const std::string& name : names) {
    if (!rule(Rule::kPreload)) break;
    MapRequest request;
    request.name = name;
    request.loader = program;
    request.how = How::kPreload;
    if (const auto mapped = map_object(request); !mapped)
      sim.problems_.push_back(
          fmt::format("{} cannot be preloaded ({}): ignored", name, mapped.error().message));
  }
  const auto& loaded = namespaces[0].loaded;
  return {loaded.begin() + static_cast<ptrdiff_t>(before), loaded.end()};
}

// ld.so stays in the list only where a DT_NEEDED names it.
void Simulation::State::place_loader() {
  if (rtld == kNone) return;
  auto& loaded = namespaces[0].loaded;
  loaded.erase(std::find(loaded.begin(), loaded.end(), rtld));
  const auto& list = object(program).search_list;
  const auto at = std::find(list.begin(), list.end(), rtld);
  if (at == list.end() || at == list.begin()) return;
  loaded.insert(std::find(loaded.begin(), loaded.end(), *(at - 1)) + 1, rtld);
}

// __rtld_malloc_init_real of elf/dl-minimal.c (glibc 2.32): ld.so looks malloc and its like up as
// the program would, and as data, so that a canonical PLT entry of the program is a definition. Of
// what the program itself refers to that makes a second provider, in ld.so's log and in ours;
// lookups without a reference are no bindings.
void Simulation::State::find_loader_malloc() {
  if (!since(32) || !rule(Rule::kLoaderMalloc)) return;
  const bool arm = sim.machine_.elf_machine == elf::EM_AARCH64;
  const std::string_view version = arm ? "GLIBC_2.17" : "GLIBC_2.2.5";
  const auto& references = sim.images_[object(program).image].references;
  enter_scope(program);
  for (const std::string_view name : {"calloc", "free", "malloc", "realloc"})
    for (uint32_t slot = 0; slot < references.size(); slot++) {
      const uint32_t symbol = references[slot].symbol;
      if (elf(program).symbol_name(symbol) != name) continue;
      const elf::Version* wanted = elf(program).version_of(symbol);
      if (!wanted || wanted->name != version) continue;
      Reference as_data = references[slot];
      as_data.kind = RefKind::kData;
      const Found found = lookup(as_data, 0);
      if (found.object != kNone) note_binding(program, slot, RefKind::kData, found, true);
      break;
    }
}

bool Simulation::State::start_relocation() {
  const auto refuse_relocation = [&](const std::string& message) {
    if (access_refused) return refuse(message);
    const bool symbol = message.find(": undefined symbol: ") != std::string::npos;
    return refuse((symbol ? "symbol lookup error: " : "error while loading shared libraries: ") +
                  message);
  };
  if (auto first = relocate_libc_first(0, lazy_allowed); !first)
    return refuse_relocation(first.error().message);
  const std::vector<ObjectId> order = object(program).init_order;
  for (size_t i = order.size(); i-- > 0;) {
    if (order[i] == rtld) continue;
    if (auto relocated = relocate(order[i], lazy_allowed); !relocated)
      return refuse_relocation(relocated.error().message);
  }
  find_loader_malloc();
  const auto& list = object(program).search_list;
  const bool loader_needed = std::find(list.begin(), list.end(), rtld) != list.end();
  if (rtld != kNone && loader_needed && rule(Rule::kLoaderRelocatedLast)) {
    object(rtld).relocated = false;
    object(rtld).scope = object(program).scope;
    (void)relocate(rtld, false);
    object(rtld).relocated = true;
  }
  for (size_t i = order.size(); i-- > 0;) {
    object(order[i]).init_called = true;
    if (sim.options_.lazy_at_load) bind_waiting(order[i]);
  }
  return true;
}

bool Simulation::State::start() {
  started = true;
  cwd = sim.start_.cwd;
  start_options();
  lazy_allowed = variable("LD_BIND_NOW").value_or("").empty();
  dynamic_weak = variable("LD_DYNAMIC_WEAK").has_value() && !sim.start_.secure;
  if (!start_program()) return false;
  start_loader();
  start_search_paths();
  const std::vector<ObjectId> preloads = preload_all();
  MapRequest base;
  if (auto outcome = map_dependencies(program, preloads, base); !outcome)
    return refuse("error while loading shared libraries: " + outcome.error().message);
  for (const ObjectId id : object(program).search_list) object(id).global = true;
  place_loader();
  const std::vector<ObjectId> loaded = namespaces[0].loaded;
  for (const ObjectId id : loaded) {
    if (auto checked = check_version_record(id); !checked)
      return refuse("error while loading shared libraries: " + checked.error().message);
    for (const std::string& missing : missing_versions(id)) (void)refuse(missing);
    if (auto checked = check_relr(id); !checked)
      return refuse("error while loading shared libraries: " + checked.error().message);
  }
  if (!sim.start_error_.empty()) return false;  // of the versions, once all are told
  if (auto checked = check_cpu_level(program); !checked) return refuse(checked.error().message);
  lay_out_static_tls();
  init_first = kNone;
  return start_relocation();
}

}  // namespace cohabit::sim
