// Whether two copies of a library lay out their objects alike, on copies that the build's own
// compiler has made (data/sample_members.c).
#include <doctest/doctest.h>

#include <map>

#include "base/tree.h"
#include "findings/members.h"
#include "findings/symbols.h"

using namespace cohabit;

namespace {

std::map<std::string_view, uint32_t> functions_of(const elf::Object& elf) {
  std::map<std::string_view, uint32_t> functions;
  for (uint32_t i = 1; i < symbol_count(elf); i++)
    if (elf.symbols[i].type() == elf::STT_FUNC && elf.symbol_name(i).starts_with("sample_"))
      functions.emplace(elf.symbol_name(i), i);
  return functions;
}

// PLAIN beside one of the others.
LayoutComparison compare(const std::string& variant) {
  const std::string start = COHABIT_SAMPLE_MEMBERS;  // the path of PLAIN
  const Tree tree;
  Images images(tree);
  std::string other = start;
  other.replace(other.rfind("PLAIN"), 5, variant);
  const auto machine = elf::parse(tree.map(start)->bytes()).machine;
  const ImageId first = images.open(start, machine).image;
  const ImageId second = images.open(other, machine).image;
  REQUIRE(first != kNone);
  REQUIRE(second != kNone);
  const auto of_first = functions_of(images[first].elf);
  std::vector<std::pair<uint32_t, uint32_t>> both;
  // Those that keep state are told by what they call.
  for (const auto& [name, symbol] : functions_of(images[second].elf))
    if (name != "sample_counter") both.emplace_back(of_first.at(name), symbol);
  CHECK(both.size() == 11);
  return compare_layouts(images[first], images[second], both);
}

const bool kIsRead =
    elf::parse(Tree().map(COHABIT_SAMPLE_MEMBERS)->bytes()).machine == elf::EM_X86_64;

}  // namespace

TEST_CASE("members: copies of one layout are alike, by another level of optimisation too") {
  for (const char* variant : {"PLAIN", "SAME"}) {
    CAPTURE(variant);
    CHECK(compare(variant).is_same() == kIsRead);
  }
}

TEST_CASE("members: one more at the front or at the end is another layout") {
  if (!kIsRead) return;
  const LayoutComparison front = compare("FRONT");
  CHECK(front.is_whole);
  CHECK(!front.keeps_state);
  CHECK(!front.is_same());
  const LayoutComparison end = compare("END");
  CHECK(end.itself.alike == end.itself.compared);
  CHECK(end.reach < end.other_reach);
  CHECK(!end.is_same());
}

TEST_CASE("members: what is kept outside of the objects is seen wherever it is reached from") {
  for (const char* variant : {"KEPT", "HELPER", "TABLE", "THREAD", "OTHER"}) {
    CAPTURE(variant);
    const LayoutComparison compared = compare(variant);
    CHECK(compared.keeps_state == kIsRead);
    CHECK(!compared.is_same());
  }
}

TEST_CASE("members: code that is not read to its end says nothing") {
  const LayoutComparison compared = compare("HIDDEN_BYTES");
  CHECK(!compared.is_whole);
  CHECK(!compared.is_same());
}
