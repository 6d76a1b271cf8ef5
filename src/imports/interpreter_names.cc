#include "imports/interpreter_names.h"

#include <algorithm>

#include "base/each_place.h"
#include "imports/module_name.h"

namespace cohabit::python {
namespace {

constexpr uint64_t kMostData = uint64_t{64} << 20;
constexpr size_t kMostName = 100;

bool is_part_of_name(char c) {
  return is_name_character(c) && c != '.';
}

// A name backwards. There are a hundred thousand: nearly all are told apart by the number that
// their first letters make.
struct Name {
  uint64_t first = 0;
  std::string whole;
  bool operator<(const Name& other) const {
    return first != other.first ? first < other.first : whole < other.whole;
  }
};

uint64_t first_letters(std::string_view text) {
  uint64_t number = 0;
  for (size_t i = 0; i < sizeof number; i++)
    number = number << 8 | (i < text.size() ? static_cast<uint8_t>(text[i]) : 0);
  return number;
}

// What stands before each zero.
void add_ends(std::string_view text, std::vector<Name>& names) {
  const auto is_end = [](const char* at) {
    const auto before = static_cast<uint8_t>(at[-1]);
    // A digit, "_", a letter, or one of the few between them.
    return (at[0] == '\0') & (before >= '0') & (before <= 'z');
  };
  const auto add = [&](size_t end) {
    size_t begin = end;
    while (begin > 0 && end - begin < kMostName && is_part_of_name(text[begin - 1])) begin--;
    const std::string_view name = text.substr(begin, end - begin);
    std::string whole(name.rbegin(), name.rend());
    if (!name.empty()) names.push_back({first_letters(whole), std::move(whole)});
    return true;
  };
  if (text.size() > 1) each_place(text, 1, text.size(), is_end, add);
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
  std::vector<Name> names;
  for (const Bytes part : data_of(object, file)) add_ends(part.text(), names);
  std::sort(names.begin(), names.end());
  // Of one that the next ends with (they are backwards) the next will do.
  std::vector<std::string> kept;
  for (size_t i = 0; i < names.size(); i++)
    if (i + 1 == names.size() || !names[i + 1].whole.starts_with(names[i].whole))
      kept.push_back(std::move(names[i].whole));
  return kept;
}

bool may_name(const std::vector<std::string>& names, std::string_view name) {
  const std::string reversed(name.rbegin(), name.rend());
  const auto found = std::lower_bound(names.begin(), names.end(), reversed);
  return found != names.end() && found->starts_with(reversed);
}

}  // namespace cohabit::python
