// How two libraries lay out the objects that their functions share, for bench/layouts.
//   layout_probe ONE OTHER [TEXT]
// Of the exported functions of both whose name contains TEXT, one line of numbers: how many tell
// and how many of these are alike, the same with helpers, the same of small ones, the last offsets
// that are reached, whether state is kept, whether all was read, whether they pass for alike.
#include <cstdio>
#include <string_view>
#include <unordered_map>

#include "base/tree.h"
#include "findings/members.h"
#include "findings/symbols.h"

using namespace cohabit;

namespace {

bool is_exported(const elf::Sym& symbol) {
  return symbol.type() == elf::STT_FUNC && symbol.st_shndx != elf::SHN_UNDEF &&
         symbol.bind() != elf::STB_LOCAL;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string_view text = argc > 3 ? argv[3] : "";
  const Tree tree;
  Images images(tree);
  const ImageId one = images.open(argv[1], elf::EM_X86_64).image;
  const ImageId other = images.open(argv[2], elf::EM_X86_64).image;
  if (one == kNone || other == kNone) return 1;
  std::unordered_map<std::string_view, uint32_t> of_other;
  const elf::Object& second = images[other].elf;
  for (uint32_t i = 1; i < symbol_count(second); i++)
    if (is_exported(second.symbols[i])) of_other.emplace(second.symbol_name(i), i);
  std::vector<std::pair<uint32_t, uint32_t>> functions;
  const elf::Object& first = images[one].elf;
  for (uint32_t i = 1; i < symbol_count(first); i++) {
    const std::string_view name = first.symbol_name(i);
    if (!is_exported(first.symbols[i]) || name.find(text) == name.npos) continue;
    if (const auto found = of_other.find(name); found != of_other.end())
      functions.emplace_back(i, found->second);
  }
  const LayoutComparison compared = compare_layouts(images[one], images[other], functions);
  std::printf("%u %u %u %u %u %u %d %d %d %d %d\n", compared.itself.compared, compared.itself.alike,
              compared.with_helpers.compared, compared.with_helpers.alike, compared.small.compared,
              compared.small.alike, compared.reach, compared.other_reach, compared.keeps_state,
              compared.is_whole, compared.is_same());
  return 0;
}
