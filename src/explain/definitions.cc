#include "explain/definitions.h"

#include <algorithm>

#include "facts/elf/object.h"

namespace cohabit::explain {
namespace {

bool defines_symbol(const elf::Object& object, std::string_view symbol) {
  for (uint32_t i = 1; i < object.symbols.size(); i++)
    if (object.symbols[i].st_shndx != elf::SHN_UNDEF && object.symbol_name(i) == symbol)
      return true;
  return false;
}

bool defines_version(const elf::Object& object, std::string_view version) {
  return std::any_of(object.version_definitions.begin(), object.version_definitions.end(),
                     [&](const elf::VersionDefinition& one) { return one.name == version; });
}

}  // namespace

Definers find_definers(const std::vector<Copy>& copies, std::string_view symbol,
                       std::string_view version, const Tree& tree) {
  Definers definers;
  for (const Copy& copy : copies) {
    const Result<MappedFile> map = tree.map(copy.path);
    if (!map) continue;
    const elf::Object object = elf::parse(map->bytes());
    if (!object.has_dynamic) continue;
    const bool has =
        symbol.empty() ? defines_version(object, version) : defines_symbol(object, symbol);
    (has ? definers.with : definers.without).push_back(copy);
  }
  return definers;
}

}  // namespace cohabit::explain
