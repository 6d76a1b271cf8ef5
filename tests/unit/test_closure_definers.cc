// Who else defines what a library refers to: as files come to the index, one definition becomes
// several, and what was known of a closure before that is not true any more.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/read_file.h"
#include "findings/closure_definers.h"
#include "findings/process_view.h"
#include "loaded.h"
#include "sim/simulation.h"
#include "temp_tree.h"
#include "this_process.h"

using namespace cohabit;

TEST_CASE("a closure is looked at again once another file defines the same names") {
  const TempTree temp;
  const Tree tree;
  Images images(tree);
  std::string user_path, definer_path;
  for (const std::string& path : really_loaded()) {
    const std::string name = path.substr(path.rfind('/') + 1);
    if (name.starts_with("libm.so") || name.starts_with("libm-")) user_path = path;
    if (name.starts_with("libc.so") || name.starts_with("libc-")) definer_path = path;
  }
  REQUIRE(!user_path.empty());
  REQUIRE(!definer_path.empty());
  const auto indexed = [&](const std::string& path) {
    const std::string text = *read_file(path);
    const uint16_t machine = *Bytes(std::string_view(text)).read<uint16_t>(18);  // e_machine
    const ImageId id = images.open(path, machine).image;
    REQUIRE(id != kNone);
    images.index(id);
    return id;
  };
  const ImageId user = indexed(user_path), definer = indexed(definer_path);
  const std::vector<ImageId> closure = {user, definer};
  ClosureDefiners definers(images);
  (void)definers.of(user, closure);
  temp.file("copy.so", *read_file(definer_path));
  const ImageId other = indexed(temp / "copy.so");

  const auto now = definers.of(user, closure);
  const auto definer_of = [&](uint32_t slot) {
    for (const ClosureDefiners::Contested& name : now->contested)
      if (name.slot == slot) return name.definer;
    return kNone;
  };
  const auto& references = images[user].references;
  size_t seen = 0;
  for (uint32_t slot = 0; slot < references.size(); slot++) {
    std::set<ImageId> all;
    for (uint32_t at = images.first_definition(references[slot].name); at != kNone;
         at = images.definition(at).next)
      all.insert(images.definition(at).image);
    if (all != std::set<ImageId>{definer, other}) continue;
    CHECK(images.has_several(references[slot].name));
    CHECK(definer_of(slot) == definer);
    seen++;
  }
  CHECK(seen > 5);
}

// What is found by halving is what a walk over all places finds, in this process with copies of
// some of its libraries.
TEST_CASE("the places at which somebody else may define what was bound") {
  const TempTree temp;
  const Tree tree;
  Images images(tree);
  const Machine machine = read_machine(tree, kThisMachine);
  sim::BindingCache cache;
  sim::Options options;
  options.cache = &cache;
  sim::Simulation simulation(images, machine, this_process(), options);
  REQUIRE(simulation.start());
  std::vector<std::string> copied = {"libm.so"};
  SUBCASE("few names have several definitions") {}
  SUBCASE("most names have") {
    copied.emplace_back("libstdc++");
  }
  for (const std::string& path : really_loaded()) {
    const std::string name = path.substr(path.rfind('/') + 1);
    if (std::none_of(copied.begin(), copied.end(),
                     [&](const std::string& begin) { return name.starts_with(begin); }))
      continue;
    temp.file("copy-" + name, *read_file(path));
    REQUIRE_FALSE(simulation.dlopen(temp / ("copy-" + name), 2).failed);
  }
  std::vector<ImageId> closure;
  for (const sim::Object& object : simulation.objects())
    if (object.image != kNone && images[object.image].indexed) closure.push_back(object.image);
  ClosureDefiners definers(images);
  size_t seen = 0, whole = 0;
  for (const sim::Bindings::Run& run : simulation.bindings().runs()) {
    const ImageId image = simulation.objects()[run.from].image;
    const auto of = definers.of(image, closure);
    std::vector<uint32_t> expected;
    for (uint32_t place = 0; place < run.bound->entries.size(); place++) {
      const sim::BoundReferences::Entry& entry = run.bound->entries[place];
      std::set<ImageId> all;
      const NameId name = run.references[entry.slot].name;
      for (uint32_t at = images.first_definition(name); at != kNone;
           at = images.definition(at).next)
        all.insert(images.definition(at).image);
      const ImageId provider = run.bound->images[entry.provider];
      const bool has_other = all.size() > 1 && provider != image;
      if (has_other || (entry.again && all.size() > 1)) expected.push_back(place);
    }
    std::vector<uint32_t> places;
    for (const ClosureDefiners::Place& at : of->places(run.bound)) places.push_back(at.place);
    CHECK(places == expected);
    seen += places.size();
    whole += run.bound->is_whole;
  }
  CHECK(seen > (copied.size() > 1 ? 100 : 5));
  CHECK(whole > 3);
}
