#include "facts/elf/library_names.h"

#include <algorithm>
#include <unordered_set>

#include "facts/elf/sections.h"

namespace cohabit::elf {
namespace {

constexpr uint64_t kMaxData = 64 << 20;  // of read-only data looked at, per file
constexpr size_t kMaxName = 200;
constexpr size_t kMostNames = 4096;

// By the section headers where there are any; else whole segments, in which data may be beside
// code.
std::vector<std::string_view> read_only_data(const Object& object, Bytes file) {
  std::vector<std::string_view> found;
  uint64_t left = kMaxData;
  const auto add = [&](uint64_t offset, uint64_t size) {
    size = std::min(size, left);
    const std::optional<Bytes> bytes = file.slice(offset, size);
    if (!bytes || size == 0) return;
    left -= size;
    found.push_back(bytes->text());
  };
  const std::vector<Section> sections = read_sections(file);
  for (const Section& section : sections)
    if ((section.flags & (SHF_WRITE | SHF_EXECINSTR)) == 0 &&
        (section.name.starts_with(".rodata") || section.name.starts_with(".lrodata")))
      add(section.offset, section.size);
  if (!sections.empty()) return found;
  for (const Phdr& segment : object.segments)
    if (!(segment.p_flags & PF_W)) add(segment.p_offset, segment.p_filesz);
  return found;
}

bool is_file_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-' || c == '+';
}

bool is_library_name(std::string_view text) {
  if (text.size() > kMaxName || !text.starts_with("lib")) return false;
  const size_t at = text.find(".so");
  if (at == text.npos || at <= 3) return false;
  const std::string_view rest = text.substr(at + 3);
  return std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at),
                     is_file_character) &&
         (rest.empty() || (rest.size() > 1 && rest.front() == '.' && rest.back() != '.' &&
                           rest.find_first_not_of(".0123456789") == rest.npos));
}

// Behind the last byte that is no text: numbers stand between strings, and need not end with a
// zero.
size_t begin_of_text(std::string_view data, size_t at) {
  const auto is_text = [](char c) { return c >= ' ' && c <= '~'; };
  const size_t least = at > kMaxName ? at - kMaxName : 0;
  while (at > least && is_text(data[at - 1])) at--;
  return at;
}

}  // namespace

std::vector<std::string> library_names(const Object& object, Bytes file) {
  std::unordered_set<std::string_view> seen;
  std::vector<std::string> names;
  for (const std::string_view data : read_only_data(object, file)) {
    for (size_t at = data.find(".so"); at != data.npos && names.size() < kMostNames;) {
      const size_t begin = begin_of_text(data, at);
      const size_t end = data.find('\0', at);
      if (end == data.npos) break;
      // A string without an end in reach is no name, and looking for its start once is enough.
      const std::string_view text = data.substr(begin, end - begin);
      if (is_library_name(text) && seen.insert(text).second) names.emplace_back(text);
      at = data.find(".so", end);
    }
  }
  return names;
}

}  // namespace cohabit::elf
