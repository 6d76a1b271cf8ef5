// Cython up to 3.0 has an array with an entry for each string: the variable's address, that of the
// text, its size; it is in the file, or a function of 3.0 makes it in its frame. In 3.1 the entries
// have no variables, and since then there may be one packed table (native_strings.h): string i is
// in variable i of an array, and where that is says only the code. Each module's code sets its name
// to "__main__" where it is run as a program, and has a
// "__test__": the array begins where the variables of these three are among those that are read.
#include "imports/cython_names.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "facts/elf/addresses.h"
#include "imports/module_name.h"

namespace cohabit::python {
namespace {

constexpr uint64_t kMaxText = 4096;  // longer ones are documentation
constexpr uint64_t kMaxEntry = 64;
constexpr size_t kMinStrings = 4;
constexpr size_t kMost = 2;       // of scores
constexpr size_t kTogether = 3;   // loads of "__name__" and "__main__"
constexpr size_t kMaxPlaced = 8;  // tables of one module; there is one, or a few parts
constexpr size_t kMaxShift = 16;  // zeros that align the lengths

bool is_writable(const elf::Object& object, uint64_t address) {
  return elf::has_rights(object, address, elf::PF_W);
}

std::optional<Bytes> bytes_at(const elf::Object& object, Bytes file, uint64_t address) {
  const auto offset = elf::offset_of(object, address);
  return offset ? std::optional(file.from(*offset)) : std::nullopt;
}

// The text at an address; not that of documentation.
std::optional<std::string> text_at(const elf::Object& object, Bytes file, uint64_t address) {
  const auto found = bytes_at(object, file, address);
  if (!found) return std::nullopt;
  const std::string_view text = found->text().substr(0, kMaxText);
  const size_t end = text.find('\0');
  return end == text.npos ? std::nullopt : std::optional(std::string(text.substr(0, end)));
}

// The text that the entry of a table leads to, if its size, with the NUL, stands behind the
// pointer, in a number of 16, 32 or 64 bits.
std::optional<std::string> text_of_entry(const elf::Object& object, Bytes file, uint64_t at,
                                         uint64_t target) {
  const auto entry = bytes_at(object, file, at);
  const uint64_t size = entry ? entry->read<uint16_t>(8).value_or(0) : 0;
  const auto text = size == 0 ? std::nullopt : text_at(object, file, target);
  return text && text->size() + 1 == size ? text : std::nullopt;
}

// Where a table can begin.
class Places {
 public:
  Places(const StringTable& table, const std::vector<uint64_t>& loads,
         const std::vector<uint64_t>& names)
      : table_(table), loads_(loads), read_(loads.begin(), loads.end()), names_(names) {
    for (const std::string_view name : {"__name__", "__main__", "__test__"}) {
      const auto found = std::find(table.begin(), table.end(), name);
      if (found == table.end()) return;
      anchors_.push_back(static_cast<uint64_t>(found - table.begin()) * 8);
    }
  }

  bool has_anchors() const { return anchors_.size() == 3; }

  // Of zeros before the lengths of the strings nobody can tell whether they are some.
  size_t most_shift() const {
    const auto found = std::find_if(table_.begin(), table_.end(),
                                    [](const std::string& text) { return !text.empty(); });
    return std::min(static_cast<size_t>(found - table_.begin()), kMaxShift);
  }

  // The one at which all speaks for it, though the code does not tell of it; 0 if none. Of several
  // the one where most names are names of the table.
  uint64_t only_place() const {
    std::map<uint64_t, size_t> found;  // by begin: how many
    for (const uint64_t variable : read_)
      if (const uint64_t begin = variable - anchors_[0]; score(begin) == kMost)
        found.emplace(begin, std::count_if(names_.begin(), names_.end(), [&](uint64_t name) {
                        return (name - begin) / 8 < table_.size();
                      }));
    const auto better = [](const auto& a, const auto& b) { return a.second < b.second; };
    const auto best = std::max_element(found.begin(), found.end(), better);
    const bool is_alone = std::count_if(found.begin(), found.end(), [&](const auto& one) {
                            return one.second == best->second;
                          }) == 1;
    return is_alone ? best->first : 0;
  }

  // 0: not there; else how much speaks for it.
  size_t score(uint64_t begin) const {
    for (const uint64_t anchor : anchors_)
      if (!read_.contains(begin + anchor)) return 0;
    for (const uint64_t variable : names_) {
      const uint64_t index = (variable - begin) / 8;
      if (index >= table_.size() || table_[index].empty()) continue;  // from . import a
      if (!is_module_name(table_[index])) return 0;
    }
    return are_together(begin + anchors_[0], begin + anchors_[1]) ? kMost : 1;
  }

 private:
  bool are_together(uint64_t one, uint64_t other) const {
    for (size_t i = 0; i < loads_.size(); i++) {
      if (loads_[i] != one) continue;
      const size_t end = std::min(loads_.size(), i + kTogether);
      for (size_t j = i < kTogether ? 0 : i - kTogether; j < end; j++)
        if (loads_[j] == other) return true;
    }
    return false;
  }

  const StringTable& table_;
  const std::vector<uint64_t>& loads_;
  std::unordered_set<uint64_t> read_;
  const std::vector<uint64_t>& names_;
  std::vector<uint64_t> anchors_;  // distances from the begin
};

}  // namespace

CythonNames::CythonNames(const elf::Object& object, Bytes file, std::vector<StringTable> tables)
    : tables_(std::move(tables)) {
  read_entries(object, file);
}

void CythonNames::read_entries(const elf::Object& object, Bytes file) {
  std::vector<std::pair<uint64_t, uint64_t>> pointers;  // where they are stored, whereto
  for (uint64_t i = 0; i < object.rela.size(); i++) {
    const elf::Rela relocation = object.rela[i];
    if (relocation.type() == elf::R_X86_64_RELATIVE)
      pointers.emplace_back(relocation.r_offset, static_cast<uint64_t>(relocation.r_addend));
  }
  std::sort(pointers.begin(), pointers.end());
  StringTable table;
  uint64_t last = 0, stride = 0;
  const auto end_table = [&] {
    if (table.size() >= kMinStrings) tables_.push_back(std::move(table));
    table.clear();
    stride = 0;
  };
  for (size_t i = 0; i < pointers.size(); i++) {
    const auto [at, target] = pointers[i];
    const auto text = text_of_entry(object, file, at, target);
    if (i > 0 && pointers[i - 1].first == at - 8 && is_writable(object, pointers[i - 1].second)) {
      if (text) strings_.emplace(pointers[i - 1].second, *text);
      continue;
    }
    // A long or binary string keeps its place in a table.
    const bool continues =
        !table.empty() && (stride != 0 ? at - last == stride : at - last <= kMaxEntry);
    if (!continues && !text) continue;
    if (!continues) end_table();
    if (!table.empty()) stride = at - last;
    table.push_back(text.value_or(std::string("\0", 1)));
    last = at;
  }
  end_table();
}

void CythonNames::read_frame(const elf::Object& object, Bytes file,
                             const std::map<int64_t, uint64_t>& frame) {
  std::unordered_map<uint64_t, std::string> found;
  for (const auto& [place, variable] : frame) {
    const auto next = frame.find(place + 8);
    if (next == frame.end() || !is_writable(object, variable) || is_writable(object, next->second))
      continue;
    if (auto text = text_at(object, file, next->second)) found.emplace(variable, std::move(*text));
  }
  if (found.size() >= kMinStrings) strings_.merge(found);
}

void CythonNames::place_tables(const std::vector<uint64_t>& loads,
                               const std::unordered_set<uint64_t>& addresses,
                               const std::vector<uint64_t>& names) {
  size_t placed = 0;
  for (const StringTable& table : tables_) {
    const Places places(table, loads, names);
    if (!places.has_anchors() || ++placed > kMaxPlaced) continue;
    uint64_t best = 0;
    size_t most = 0;
    const size_t shifts = places.most_shift();
    for (const uint64_t address : addresses)
      for (size_t shift = 0; shift <= shifts; shift++) {
        const uint64_t begin = address - shift * 8;
        const size_t score = places.score(begin);
        if (score < most || score == 0 || (score == most && begin >= best)) continue;
        best = begin;
        most = score;
      }
    if (most == 0) best = places.only_place();
    if (best == 0) continue;
    for (size_t i = 0; i < table.size(); i++) strings_.emplace(best + i * 8, table[i]);
  }
}

const std::string* CythonNames::find(uint64_t variable) const {
  const auto found = strings_.find(variable);
  return found == strings_.end() ? nullptr : &found->second;
}

}  // namespace cohabit::python
