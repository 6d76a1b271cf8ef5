#include "facts/elf/sections.h"

namespace cohabit::elf {

std::vector<Section> read_sections(Bytes file) {
  using namespace std::literals;
  const auto header = file.read<Ehdr>(0);
  if (!header || !file.text().starts_with("\x7f"
                                          "ELF\2\1"sv))
    return {};
  const auto table = file.table<Shdr>(header->e_shoff, header->e_shnum);
  if (!table || header->e_shstrndx >= table->size()) return {};
  const Shdr of_names = (*table)[header->e_shstrndx];
  const auto names = file.slice(of_names.sh_offset, of_names.sh_size);
  if (!names) return {};
  std::vector<Section> sections;
  for (uint64_t i = 0; i < table->size(); i++) {
    const Shdr section = (*table)[i];
    if (section.sh_type != SHT_PROGBITS || !file.contains(section.sh_offset, section.sh_size))
      continue;
    sections.push_back({names->c_string(section.sh_name).value_or(""), section.sh_offset,
                        section.sh_size, section.sh_flags});
  }
  return sections;
}

}  // namespace cohabit::elf
