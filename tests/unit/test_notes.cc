// Property notes and build ids, well formed and not: what must be taken, and what ld.so leaves.
#include <doctest/doctest.h>

#include <initializer_list>
#include <string>

#include "facts/elf/notes.h"

using namespace cohabit;

namespace {

std::string words(std::initializer_list<uint32_t> values) {
  std::string text;
  for (const uint32_t value : values) text.append(reinterpret_cast<const char*>(&value), 4);
  return text;
}

std::string property(const std::string& array, uint32_t size) {
  return words({4, size, 5, 0x00554e47}) + array;
}

std::string property(const std::string& array) {
  return property(array, static_cast<uint32_t>(array.size()));
}

constexpr uint32_t kNeeded = elf::GNU_PROPERTY_1_NEEDED, kIsa = elf::GNU_PROPERTY_X86_ISA_1_NEEDED,
                   kFeature = elf::GNU_PROPERTY_X86_FEATURE_1_AND;

elf::Properties read(const std::string& notes) {
  return elf::read_properties(Bytes(notes));
}

}  // namespace

TEST_CASE("properties of one note are read, behind other notes too") {
  const std::string both = property(words({kNeeded, 4, 1, 0, kFeature, 4, 3, 0, kIsa, 4, 6, 0}));
  const std::string build_id = words({4, 4, 3, 0x00554e47, 0xdeadbeef, 0});
  for (const std::string& notes : {both, build_id + both, both + build_id}) {
    CHECK(read(notes).needed_1 == 1);
    CHECK(read(notes).x86_isa_1_needed == 6);
  }
  CHECK(elf::read_build_id(Bytes(build_id)) == "efbeadde");
}

TEST_CASE("ld.so takes nothing of two notes, wrong order, wrong sizes") {
  const std::string isa = words({kIsa, 4, 2, 0}), needed = words({kNeeded, 4, 1, 0});
  CHECK(read(property(isa)).x86_isa_1_needed == 2);
  CHECK(read(property(isa) + property(isa)).x86_isa_1_needed == 0);
  CHECK(read(property(words({kFeature, 4, 3, 0}) + needed)).needed_1 == 0);
  CHECK(read(property(words({kIsa, 8, 2, 0}))).x86_isa_1_needed == 0);
  CHECK(read(property(words({kIsa, 0xfffffff8, 2, 0}))).x86_isa_1_needed == 0);
  CHECK(read(property(isa, 12)).x86_isa_1_needed == 0);
  CHECK(read(property(isa, 0xfffffff8)).x86_isa_1_needed == 0);
  CHECK(read(property(words({0xc0008003, 4, 0, 0}) + isa)).x86_isa_1_needed == 0);
}

TEST_CASE("notes that end anywhere are read to their end") {
  const std::string notes = words({4, 4, 3, 0x00554e47, 0xdeadbeef, 0}) +
                            property(words({kNeeded, 4, 1, 0, kIsa, 4, 6, 0}));
  for (size_t size = 0; size < notes.size(); size++) {
    const std::string cut = notes.substr(0, size);
    CHECK(read(cut).x86_isa_1_needed == 0);
    CHECK(elf::read_build_id(Bytes(cut)) == (size < 20 ? "" : "efbeadde"));
  }
}
