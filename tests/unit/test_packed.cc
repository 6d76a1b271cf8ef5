// Numbers, texts and plans as bytes: what is written is read, and no bytes do harm.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>

#include "base/packed.h"
#include "imports/plan_bytes.h"

using namespace cohabit;

namespace {

python::Plan some_plan() {
  python::Plan plan;
  plan.modules.push_back({"a", python::ModuleKind::kNative, "/a.so", "", 0});
  plan.modules.push_back({"b", python::ModuleKind::kSource, "/b.py", "a", 700});
  plan.wanted = {{"a", "b"}};
  plan.opens = {{std::nullopt,
                 2,
                 "",
                 python::OpenCause::kCall,
                 "a",
                 "/a.py",
                 3,
                 "",
                 {{"f", true}, {"g", false}}},
                {"/x.so", -1, "/a.so", python::OpenCause::kExtension, "b", "/b.py", 4, "no", {}}};
  plan.undecided = {{"/b.py", 5, "a condition"}};
  plan.raises = {{"/b.py", 6, "KeyError"}};
  plan.failure = "ImportError: no";
  plan.failure_file = "/b.py";
  plan.failure_line = 7;
  plan.failure_declared = true;
  plan.importable = {"a", "b"};
  plan.problems = {std::string("a\0b", 3)};
  plan.events = {{python::PlanEvent::kEnter, 0},
                 {python::PlanEvent::kOpen, 1},
                 {python::PlanEvent::kVariable, 0},
                 {python::PlanEvent::kLeave, 1}};
  plan.sought = {"HOME"};
  plan.variables_changed = {{"HOME", "/b.py", 8, "/c.py", 9}};
  plan.loaded = {"a"};
  plan.variables_set = {"HOME"};
  plan.path_added = {"/more"};
  plan.changes_imports = true;
  return plan;
}

std::string bytes_of(const python::Plan& plan) {
  Packer packer;
  python::pack_plan(plan, packer);
  return packer.bytes();
}

bool fits(const python::Plan& plan) {
  for (const python::PlanEvent& event : plan.events) {
    const bool is_module =
        event.kind == python::PlanEvent::kEnter || event.kind == python::PlanEvent::kLeave;
    const size_t most = is_module                                ? plan.modules.size()
                        : event.kind == python::PlanEvent::kOpen ? plan.opens.size()
                                                                 : plan.sought.size();
    if (event.index >= most) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("numbers and texts in a row") {
  Packer packer;
  for (const uint64_t number : {uint64_t{0}, uint64_t{127}, uint64_t{128}, UINT64_MAX})
    packer.number(number);
  packer.text("");
  packer.text("text");
  Unpacker unpacker(packer.bytes());
  CHECK(unpacker.number() == 0);
  CHECK(unpacker.number() == 127);
  CHECK(unpacker.number() == 128);
  CHECK(unpacker.number() == UINT64_MAX);
  CHECK(unpacker.text().empty());
  CHECK(!unpacker.is_whole());
  CHECK(unpacker.text() == "text");
  CHECK(unpacker.is_whole());
  CHECK(unpacker.number() == 0);
  CHECK(!unpacker.is_whole());
}

TEST_CASE("a plan as bytes and back") {
  const python::Plan plan = some_plan();
  const std::string bytes = bytes_of(plan);
  Unpacker unpacker(bytes);
  const python::Plan again = python::unpack_plan(unpacker);
  CHECK(unpacker.is_whole());
  CHECK(bytes_of(again) == bytes);
  CHECK(again.events.size() == plan.events.size());
  CHECK(again.opens[1].flags == -1);
  CHECK(!again.opens[0].name);
  CHECK(again.failure == plan.failure);
}

TEST_CASE("no bytes do harm") {
  const std::string bytes = bytes_of(some_plan());
  for (size_t size = 0; size < bytes.size(); size++) {
    Unpacker unpacker(std::string_view(bytes).substr(0, size));
    CHECK(fits(python::unpack_plan(unpacker)));
    CHECK(!unpacker.is_whole());
  }
  for (size_t at = 0; at < bytes.size(); at++)
    for (const int flip : {1, 0x80, 0xff}) {
      std::string other = bytes;
      other[at] = static_cast<char>(other[at] ^ flip);
      Unpacker unpacker(other);
      CHECK(fits(python::unpack_plan(unpacker)));
    }
}
