#include "imports/native_names.h"

#include <algorithm>
#include <set>

namespace cohabit::python {
namespace {

constexpr uint64_t kMaxData = 8 << 20;  // of read-only data looked at, per file
constexpr size_t kMaxName = 200;

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.';
}

bool is_module_name(std::string_view text) {
  if (text.size() < 2 || text.size() > kMaxName) return false;
  if (text.front() == '.' || text.back() == '.' || (text[0] >= '0' && text[0] <= '9')) return false;
  return text.find("..") == text.npos && std::all_of(text.begin(), text.end(), is_name_character);
}

// The strings between two NULs in the read-only data, each once, in order.
std::vector<std::string_view> whole_strings(const elf::Object& object, Bytes file) {
  std::vector<std::string_view> found;
  std::set<std::string_view> seen;
  uint64_t left = kMaxData;
  for (const elf::Phdr& segment : object.segments) {
    if (segment.p_flags & elf::PF_W) continue;
    const uint64_t size = std::min(segment.p_filesz, left);
    const std::optional<Bytes> data = file.slice(segment.p_offset, size);
    if (!data) continue;
    left -= size;
    const std::string_view text = data->text();
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\0', begin), text.size());
      const std::string_view word = text.substr(begin, end - begin);
      if (is_module_name(word) && seen.insert(word).second) found.push_back(word);
      begin = end + 1;
    }
  }
  return found;
}

}  // namespace

std::vector<NativeImport> native_imports(const elf::Object& object, Bytes file,
                                         const ModuleSpec& self, Finder& finder) {
  std::vector<NativeImport> result;
  for (const std::string_view word : whole_strings(object, file)) {
    if (word == self.name) continue;
    const bool dotted = word.find('.') != word.npos;
    if (const auto spec = finder.find_dotted(word))
      if (spec->kind != ModuleKind::kNamespace) result.push_back({std::string(word), dotted});
  }
  return result;
}

std::vector<std::string> own_submodules(const elf::Object& object, Bytes file,
                                        const ModuleSpec& self) {
  std::vector<std::string> result;
  for (const std::string_view word : whole_strings(object, file))
    if (word.size() > self.name.size() + 1 && word.starts_with(self.name) &&
        word[self.name.size()] == '.')
      result.emplace_back(word);
  return result;
}

}  // namespace cohabit::python
