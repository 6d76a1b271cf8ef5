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

TEST_CASE("a copy goes on as what it was copied from, and changes nothing in that") {
  using Rows = std::vector<std::tuple<uint32_t, uint32_t, uint32_t, uint32_t, uint32_t>>;
  const Tree tree;
  Images images(tree);
  const Machine machine = read_machine(tree, kThisMachine);
  sim::BindingCache cache;
  sim::Options options;
  SUBCASE("nothing is repeated") {}
  SUBCASE("relocations are repeated") {
    options.cache = &cache;
  }
  std::vector<LoaderCall> calls;
  for (const char* name : {"libBrokenLocale.so.1", "libdoes-not-exist.so.7", "libanl.so.1",
                           "libthread_db.so.1", "libBrokenLocale.so.1"}) {
    calls.emplace_back().name = name;
    calls.back().flags = RTLD_LAZY | RTLD_GLOBAL;
  }
  const auto state_of = [](const sim::Simulation& simulation) {
    Rows rows;
    simulation.bindings().each([&](uint32_t, const sim::Binding& binding) {
      rows.emplace_back(binding.from, binding.to, binding.reference, binding.definition,
                        binding.call);
    });
    for (const sim::Object& object : simulation.objects())
      rows.emplace_back(object.image, object.by, object.call, object.direct_open_count,
                        object.search_list.size());
    for (const sim::MissingSymbol& missing : simulation.missing())
      rows.emplace_back(missing.from, missing.reference, missing.weak, missing.lazy, missing.call);
    for (const sim::CallResult& result : simulation.results())
      rows.emplace_back(result.object, result.failed, result.error.size(), 0, 0);
    return rows;
  };
  sim::Simulation whole(images, machine, this_process(), options);
  whole.run(calls);
  REQUIRE(whole.start_error() == "");
  for (size_t played = 0; played <= calls.size(); played++) {
    CAPTURE(played);
    sim::Simulation first(images, machine, this_process(), options);
    first.run({calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(played)});
    const auto before = state_of(first);
    const auto copy = first.copy();
    CHECK(state_of(*copy) == before);
    copy->go_on(calls);
    CHECK(state_of(*copy) == state_of(whole));
    CHECK(state_of(first) == before);
    first.go_on(calls);
    CHECK(state_of(first) == state_of(whole));
  }
}
