// The simulation of this very process, against what its loader did: dl_iterate_phdr and dlopen.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <set>
#include <string>

#include "facts/host/machine.h"
#include "loaded.h"
#include "sim/simulation.h"
#include "this_process.h"

using namespace cohabit;

namespace {

std::set<std::string> simulated(const sim::Simulation& simulation) {
  std::set<std::string> paths;
  for (const sim::Object& object : simulation.objects())
    if (!object.unmapped && object.how != sim::How::kProgram)
      paths.insert(simulation.images()[object.image].real_path);
  return paths;
}

}  // namespace

TEST_CASE("start-up, dlopen and dlclose of this process") {
  const Tree tree;
  Images images(tree);
  const Machine machine = read_machine(tree, kThisMachine);
  sim::Simulation simulation(images, machine, this_process());
  const std::set<std::string> at_start = really_loaded();
  REQUIRE_MESSAGE(simulation.start(), simulation.start_error());
  CHECK(simulated(simulation) == at_start);

  // Part of every glibc, needed by hardly anything.
  const char* name = "libBrokenLocale.so.1";
  void* handle = dlopen(name, RTLD_NOW);
  const sim::CallResult opened = simulation.dlopen(name, RTLD_NOW);
  REQUIRE((handle != nullptr) == !opened.failed);
  CHECK(simulated(simulation) == really_loaded());
  if (handle) {
    dlclose(handle);
    simulation.dlclose(opened.object);
    CHECK(simulated(simulation) == really_loaded());
  }

  REQUIRE(dlopen("libdoes-not-exist.so.7", RTLD_NOW) == nullptr);
  const std::string error = dlerror();
  const sim::CallResult failed = simulation.dlopen("libdoes-not-exist.so.7", RTLD_NOW);
  CHECK(failed.failed);
  CHECK(failed.error == error);
  CHECK_FALSE(failed.search.empty());
}

TEST_CASE("further simulations over the same files give the same bindings") {
  const Tree tree;
  Images images(tree);
  const Machine machine = read_machine(tree, kThisMachine);
  sim::BindingCache cache;
  sim::Options options;
  const auto run = [&] {
    sim::Simulation simulation(images, machine, this_process(), options);
    CHECK(simulation.start());
    std::vector<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t>> bindings;
    simulation.bindings().each([&](uint32_t, const sim::Binding& binding) {
      bindings.emplace_back(binding.from, binding.to, binding.reference, binding.definition);
    });
    return bindings;
  };
  const auto plain = run();
  options.cache = &cache;
  CHECK(run() == plain);
  CHECK(run() == plain);
  CHECK(plain.size() > 100);
}
