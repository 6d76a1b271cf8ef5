// Questions about the names in an object's dynamic symbol table.
#pragma once

#include <algorithm>
#include <string_view>

#include "facts/elf/object.h"

namespace cohabit::python {

// Whether the name of a symbol that the object defines fits.
template <class Fits>
bool defines(const elf::Object& object, const Fits& fits) {
  for (uint32_t i = 0; i < object.symbols.size(); i++)
    if (object.symbols[i].st_shndx != elf::SHN_UNDEF && fits(object.symbol_name(i))) return true;
  return false;
}

// Of a symbol that it wants from others.
template <class Fits>
bool refers_to(const elf::Object& object, const Fits& fits) {
  // What a GNU hash table finds stands behind what is not defined.
  const uint64_t end = object.gnu_hash ? object.gnu_hash->symbol_offset : object.symbols.size();
  for (uint32_t i = 0; i < std::min<uint64_t>(end, object.symbols.size()); i++)
    if (object.symbols[i].st_shndx == elf::SHN_UNDEF && fits(object.symbol_name(i))) return true;
  return false;
}

}  // namespace cohabit::python
