#include "imports/file_strings.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string>

#include "base/find_text.h"

namespace cohabit::python {
namespace {

constexpr size_t kFirstTable = 1 << 14;
constexpr size_t kMostIndexed = size_t{64} << 20;  // bytes of a file
constexpr int kWorthIt = 3;                        // searches that cost as much as the index

constexpr std::array<bool, 256> kIsWord = [] {
  std::array<bool, 256> is_word{};
  for (int c = '0'; c <= '9'; c++) is_word[c] = true;
  for (int c = 'a'; c <= 'z'; c++) is_word[c] = is_word[c - 'a' + 'A'] = true;
  is_word['_'] = true;
  return is_word;
}();

bool is_word(char c) {
  return kIsWord[static_cast<unsigned char>(c)];
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_word);
}

}  // namespace

void FileStrings::grow() {
  std::vector<Place> old(std::max(kFirstTable, table_.size() * 2));
  old.swap(table_);
  count_ = 0;
  for (const Place& place : old)
    if (place.size > 0) add(place.begin, place.size);
}

void FileStrings::add(uint32_t begin, uint32_t size) {
  if ((count_ + 1) * 2 > table_.size()) grow();
  const std::string_view text = file_.bytes().text(), name = text.substr(begin, size);
  size_t at = std::hash<std::string_view>()(name) & (table_.size() - 1);
  for (; table_[at].size > 0; at = (at + 1) & (table_.size() - 1))
    if (text.substr(table_[at].begin, table_[at].size) == name) return;
  table_[at] = {begin, size};
  count_++;
}

void FileStrings::index() {
  const std::string_view text = file_.bytes().text();
  for (size_t begin = text.find('\0'); begin + 1 < text.size();) {
    size_t end = begin + 1;
    while (end < text.size() && is_word(text[end])) end++;
    if (end < text.size() && text[end] == '\0') {
      if (end > begin + 1)
        add(static_cast<uint32_t>(begin + 1), static_cast<uint32_t>(end - begin - 1));
      begin = end;
    } else {
      begin = std::min(text.find('\0', end), text.size());
    }
  }
  if (table_.empty()) grow();
}

bool FileStrings::is_indexed(std::string_view name) const {
  const std::string_view text = file_.bytes().text();
  size_t at = std::hash<std::string_view>()(name) & (table_.size() - 1);
  for (; table_[at].size > 0; at = (at + 1) & (table_.size() - 1))
    if (text.substr(table_[at].begin, table_[at].size) == name) return true;
  return false;
}

bool FileStrings::has(std::string_view text) {
  const std::string_view bytes = file_.bytes().text();
  if (bytes.empty()) return false;
  if (is_name(text) && bytes.size() <= kMostIndexed && ++asked_ > kWorthIt) {
    if (table_.empty()) index();
    return is_indexed(text);
  }
  std::string whole(1, '\0');
  whole.append(text).push_back('\0');
  return find_text(bytes, whole) != bytes.npos;
}

bool FileStrings::contains(std::string_view text) const {
  const std::string_view bytes = file_.bytes().text();
  return find_text(bytes, text) != bytes.npos;
}

namespace {

// Whether one of the places at which the text stands fits.
template <class Fits>
bool any_place(std::string_view file, std::string_view text, const Fits& fits) {
  for (size_t at = find_text(file, text); at != file.npos; at = find_text(file, text, at + 1))
    if (fits(at)) return true;
  return false;
}

// What stands in a file from `at` on begins `name`, and then something is filled in.
bool begins_made(std::string_view file, size_t at, std::string_view name) {
  const std::string_view rest = file.substr(at, name.size());
  const auto [here, there] = std::mismatch(rest.begin(), rest.end(), name.begin(), name.end());
  if (here == rest.end() || there == name.end()) return false;
  const char next = *here;
  return next == '%' || next == '(' || next == '{' || (next == '\0' && here[-1] == '_');
}

// Behind what is filled in, up to the end of the text, stands the end of `name`.
bool ends_made(std::string_view file, size_t behind, std::string_view name) {
  constexpr size_t kLeast = 3;  // letters: shorter ones stand behind each "%d"
  size_t end = behind;
  while (end < file.size() && is_word(file[end])) end++;
  const std::string_view text = file.substr(behind, end - behind);
  return text.size() >= kLeast && text.size() < name.size() && name.ends_with(text);
}

}  // namespace

bool FileStrings::may_be_inlined(std::string_view text) const {
  const std::string_view file = file_.bytes().text();
  const size_t length = text.size() > 16 ? 16 : text.size() > 8 ? 8 : 4;
  return text.size() > length && any_place(file, text.substr(0, length), [&](size_t at) {
           const size_t behind = at + length;
           return behind < file.size() && (file[behind] < ' ' || file[behind] > '~');
         });
}

bool FileStrings::may_make(std::string_view name) const {
  if (contains(name) || may_be_inlined(name)) return true;
  constexpr size_t kBeginning = 4;
  const std::string_view file = file_.bytes().text();
  const auto begins = [&](size_t at) {
    return (at == 0 || !is_word(file[at - 1])) && begins_made(file, at, name);
  };
  if (name.size() > kBeginning && any_place(file, name.substr(0, kBeginning), begins)) return true;
  for (const std::string_view filled : {"%s", "%d", "{}"})
    if (any_place(file, filled,
                  [&](size_t at) { return ends_made(file, at + filled.size(), name); }))
      return true;
  return false;
}

}  // namespace cohabit::python
