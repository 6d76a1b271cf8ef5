#include "imports/interpreter_names.h"

#include <algorithm>

#include "imports/module_name.h"

namespace cohabit::python {
namespace {

constexpr uint64_t kMostData = uint64_t{64} << 20;
constexpr size_t kMostName = 100;

bool is_part_of_name(char c) {
  return is_name_character(c) && c != '.';
}

// What stands before each zero.
void add_ends(std::string_view text, std::vector<std::string>& names) {
  for (size_t end = text.find('\0'); end != text.npos; end = text.find('\0', end + 1)) {
    size_t begin = end;
    while (begin > 0 && end - begin < kMostName && is_part_of_name(text[begin - 1])) begin--;
    if (begin == end) continue;
    const std::string_view name = text.substr(begin, end - begin);
    names.emplace_back(name.rbegin(), name.rend());
  }
}

// The file's parts that hold constants and initialised variables; without section headers all that
// is loaded.
std::vector<Bytes> data_of(const elf::Object& object, Bytes file) {
  std::vector<Bytes> parts;
  uint64_t left = kMostData;
  const auto add = [&](uint64_t offset, uint64_t size) {
    size = std::min(size, left);
    const auto part = file.slice(offset, size);
    if (!part) return;
    left -= size;
    parts.push_back(*part);
  };
  const elf::Ehdr header = file.read<elf::Ehdr>(0).value_or(elf::Ehdr{});
  if (header.e_shentsize == sizeof(elf::Shdr)) {
    const auto sections = file.table<elf::Shdr>(header.e_shoff, header.e_shnum);
    for (uint64_t i = 0; sections && i < sections->size(); i++) {
      const elf::Shdr section = (*sections)[i];
      if (section.sh_type == elf::SHT_PROGBITS && (section.sh_flags & elf::SHF_ALLOC) &&
          !(section.sh_flags & elf::SHF_EXECINSTR))
        add(section.sh_offset, section.sh_size);
    }
  }
  if (parts.empty())
    for (const elf::Phdr& segment : object.segments)
      if (segment.p_type == elf::PT_LOAD) add(segment.p_offset, segment.p_filesz);
  return parts;
}

}  // namespace

std::vector<std::string> names_of_interpreter(const elf::Object& object, Bytes file) {
  std::vector<std::string> names;
  for (const Bytes part : data_of(object, file)) add_ends(part.text(), names);
  std::sort(names.begin(), names.end());
  // Of one that the next ends with (they are backwards) the next will do.
  std::vector<std::string> kept;
  for (size_t i = 0; i < names.size(); i++)
    if (i + 1 == names.size() || !names[i + 1].starts_with(names[i]))
      kept.push_back(std::move(names[i]));
  return kept;
}

bool may_name(const std::vector<std::string>& names, std::string_view name) {
  const std::string reversed(name.rbegin(), name.rend());
  const auto found = std::lower_bound(names.begin(), names.end(), reversed);
  return found != names.end() && found->starts_with(reversed);
}

}  // namespace cohabit::python
