// The facts that all examined processes of one environment share.
#include <fmt/format.h>

#include "base/say.h"
#include "cli/examine.h"
#include "cli/kept_environment.h"
#include "facts/cuda/builds.h"
#include "world/driver_stand_in.h"

namespace cohabit {
namespace {

// The modules of what Cohabit is for (docs/design/imports.md).
constexpr std::string_view kFrameworks[] = {"torch",       "paddle", "tensorflow",  "jax",
                                            "onnxruntime", "cupy",   "ctranslate2", "pycuda",
                                            "faiss",       "xgboost"};

// "cuda13" of jax-cuda13-pjrt: a part of a framework, which itself says nothing.
std::string cuda_in_name(const std::string& name) {
  const size_t at = name.find("cuda");
  if (at == std::string::npos) return "";
  const size_t end = name.find_first_not_of("0123456789", at + 4);
  return end == at + 4 || at + 4 == name.size() ? "" : name.substr(at, end - at);
}

// A file that two distributions claim is what the one that is installed last made it; which that is
// does not matter here, as long as it is the same for all parts of a library.
sim::LaterOpens::Facts facts_of_files(const World& world) {
  std::unordered_map<std::string, std::string> cuda;
  for (const cuda::FrameworkBuild& build :
       cuda::read_builds(world.tree, *world.python, world.distributions))
    if (build.distribution && build.cuda)
      cuda[build.distribution->name] = fmt::format("cuda{}", build.cuda->major);
  return [&distributions = world.distributions, cuda = std::move(cuda)](const std::string& path) {
    const auto owners = distributions.owners(path);
    if (owners.empty()) return sim::OpenerFacts{};
    const auto made_for = cuda.find(owners.front()->name);
    return sim::OpenerFacts{owners.front()->version, made_for == cuda.end()
                                                         ? cuda_in_name(owners.front()->name)
                                                         : made_for->second};
  };
}

void begin_kept(World& world) {
  world.index = KeptIndex::open(world.python->prefix, world.indexed());
  if (KnownWords* words = world.tree.words())
    world.words = KeptWords::open(world.python->prefix, *words);
}

}  // namespace

Result<void> find_environment(World& world, const std::string& place,
                              const PythonVariables& variables, bool takes_kept) {
  auto python = find_interpreter(world.tree, place, variables);
  if (!python) return tl::unexpected<Error>(python.error());
  world.python = std::move(*python);
  if (takes_kept) begin_kept(world);
  world.distributions = Distributions::read(world.tree, *world.python);
  world.later.emplace(false, facts_of_files(world));
  return {};
}

namespace {

Result<void> find_and_say(World& world, const std::string& place, const PythonVariables& variables,
                          bool takes_kept = false) {
  if (auto found = find_environment(world, place, variables, takes_kept); !found) return found;
  if (!world.python->found_by.empty())
    say("examining {} (found by {})\n", world.python->prefix, world.python->found_by);
  return {};
}

}  // namespace

Result<void> choose_environment(World& world, const std::string& place,
                                const PythonVariables& variables, bool takes_kept) {
  if (auto found = find_and_say(world, place, variables, takes_kept); !found) return found;
  if (!world.tree.root().empty()) return {};
  if (const auto halfway = halfway_changed(world.python->prefix); !halfway.empty())
    say("warning: {}\n", halfway);
  return {};
}

Result<void> choose_whole_environment(World& world, const std::string& place) {
  if (auto found = find_and_say(world, place, PythonVariables::from_environment()); !found)
    return found;
  return check_whole(world.python->prefix);
}

void ready(World& world) {
  if (world.index) world.index->wait();
}

void World::settle() {
  if (index) index->wait();
  if (kept) kept->wait();
  images.settle();
}

void save_kept(World& world) {
  if (world.kept) world.kept->save();
  if (world.words) world.words->save();
  if (world.index) world.index->save();
}

Result<void> assume_gpu(World& world, bool driver_is_there) {
  ready(world);
  world.later->assume_gpu();
  if (driver_is_there) return {};
  auto libraries = assume_driver(world.images, world.machine.elf_machine);
  if (!libraries) return tl::unexpected<Error>(libraries.error());
  for (AssumedLibrary& library : *libraries)
    world.machine.assumed.emplace_back(std::move(library.name), std::move(library.path));
  return {};
}

Result<void> assume_gpu_that_is_there(World& world, const cuda::GpuHost& host) {
  if (host.has_gpu() && host.has_driver()) return assume_gpu(world, true);
  return {};
}

std::string file_of_environment(const World& world) {
  for (const char* name : {"/pyvenv.cfg", "/conda-meta/history"})
    if (std::string file = world.python->prefix + name; world.tree.stat(file)) return file;
  return world.python->executable;
}

std::string no_framework_in(const std::string& prefix) {
  return fmt::format(
      "there is no framework that Cohabit knows in {}, and no package that was asked for by name "
      "(REQUESTED): say what is imported, --imports a,b",
      prefix);
}

std::vector<std::string> find_frameworks(const World& world) {
  python::Finder finder(world.tree, *world.python);
  std::vector<std::string> found;
  for (const std::string_view name : kFrameworks) {
    const auto spec = finder.find_top_level(name);
    // A directory without __init__ is what a removed package leaves.
    if (spec && spec->kind != python::ModuleKind::kNamespace) found.emplace_back(name);
  }
  return found;
}

}  // namespace cohabit
