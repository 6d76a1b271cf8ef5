// The simulation of this very process, against what its loader did: dl_iterate_phdr and dlopen.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <set>
#include <string>

#include "base/read_file.h"
#include "facts/host/machine.h"
#include "loaded.h"
#include "sim/simulation.h"
#include "temp_tree.h"
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
  // A copy of the C++ runtime, which finds itself first, and has unique symbols that are defined
  // already.
  const TempTree temp;
  for (const std::string& path : really_loaded())
    if (path.find("/libstdc++") != std::string::npos) temp.file("copy.so", *read_file(path));
  std::vector<LoaderCall> calls;
  for (const std::string& name :
       {std::string("libBrokenLocale.so.1"), std::string("libdoes-not-exist.so.7"),
        std::string("libanl.so.1"), temp / "copy.so", std::string("libBrokenLocale.so.1")}) {
    calls.emplace_back().name = name;
    calls.back().flags = RTLD_LAZY | RTLD_GLOBAL | (name.starts_with('/') ? RTLD_DEEPBIND : 0);
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

TEST_CASE("what a copy binds lazily is not bound in what it was copied from") {
  const Tree tree;
  Images images(tree);
  const Machine machine = read_machine(tree, kThisMachine);
  sim::Options options;
  options.lazy_at_load = false;
  sim::Simulation simulation(images, machine, this_process(), options);
  REQUIRE(simulation.start());
  std::vector<std::string> names;
  sim::ObjectId lazy = kNone;
  for (sim::ObjectId id = 0; id < simulation.objects().size() && names.size() < 3; id++) {
    names.clear();
    lazy = id;
    if (!simulation.objects()[id].lazy) continue;
    for (const Reference& reference : images[simulation.objects()[id].image].references)
      if (reference.kind == RefKind::kJumpSlot && !reference.weak && !reference.is_protected)
        names.emplace_back(images.name(reference.name));
  }
  REQUIRE(names.size() >= 3);
  simulation.call_lazily(lazy, names[0]);
  const size_t before = simulation.bindings().size();
  const auto copy = simulation.copy();
  copy->call_lazily(lazy, names[1]);
  copy->call_lazily(lazy, names[2]);
  CHECK(copy->bindings().size() == before + 2);
  CHECK(simulation.bindings().size() == before);
  simulation.call_lazily(lazy, names[2]);
  const auto last_name = [&](const sim::Simulation& of) {
    const sim::Binding last = of.bindings()[static_cast<uint32_t>(of.bindings().size() - 1)];
    return images.name(images[of.objects()[lazy].image].references[last.slot].name);
  };
  CHECK(simulation.bindings().size() == before + 1);
  CHECK(last_name(simulation) == names[2]);
  CHECK(last_name(*copy) == names[2]);
  size_t seen = 0;
  simulation.bindings().each([&](uint32_t, const sim::Binding&) { seen++; });
  CHECK(seen == before + 1);
}
