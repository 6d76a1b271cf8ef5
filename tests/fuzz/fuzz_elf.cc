// Fuzz target: the ELF reader. parse() never fails, and all that it returns is safe to look at.
#include <cstddef>
#include <cstdint>

#include "facts/elf/format.h"
#include "facts/elf/object.h"

namespace {

volatile uint64_t sink;  // what is read must not be optimised away

void read_everything(const cohabit::elf::Object& object) {
  uint64_t sum = object.symbols.size() + object.segments.size() + object.defects.size();
  for (uint32_t i = 0; i < object.symbols.size(); i++) {
    sum += object.symbol_name(i).size();
    if (const cohabit::elf::Version* version = object.version_of(i)) sum += version->name.size();
  }
  for (uint64_t i = 0; i < object.rela.size(); i++) sum += object.rela[i].r_info;
  for (uint64_t i = 0; i < object.jmprel.size(); i++) sum += object.jmprel[i].r_info;
  for (const auto& dependency : object.dependencies)
    sum += cohabit::elf::gnu_hash(dependency.name) + cohabit::elf::sysv_hash(dependency.name);
  for (const auto& need : object.version_needs) sum += need.file.size() + need.name.size();
  for (const auto& definition : object.version_definitions) sum += definition.name.size();
  sink = sum + object.soname.value_or("").size() + object.runpath.value_or("").size();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const cohabit::Bytes file(data, size);
  sink = static_cast<uint64_t>(cohabit::elf::check_header(file, cohabit::elf::EM_X86_64).verdict);
  read_everything(cohabit::elf::parse(file));
  return 0;
}
