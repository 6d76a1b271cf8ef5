// A name is read if it stands as a word in Python code or in the constants of a native file. Two
// families are put together at run time from parts: Paddle's FLAGS_x is defined as x, JAX's JAX_X
// as jax_x.
#include "findings/variables.h"

#include <cstring>

#include <algorithm>
#include <cctype>

#include "base/rows.h"
#include "facts/elf/sections.h"
#include "findings/spelling.h"

namespace cohabit {
namespace {

constexpr std::string_view kTable =
#include "data/variables.inc"
    ;
constexpr std::string_view kPrefixes[] = {
    "CUDA_",   "CUDNN_", "CUBLAS_", "NCCL_", "PYTORCH_", "TORCH_", "TF_",  "XLA_", "JAX_", "FLAGS_",
    "TRITON_", "CUPY_",  "CT2_",    "ORT_",  "OMP_",     "GOMP_",  "KMP_", "MKL_", "LD_"};
constexpr size_t kMaxSearched = 32;
constexpr size_t kMaxDistance = 2;
constexpr size_t kLongName = 12;  // shorter ones may differ by one letter only

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

bool contains_word(std::string_view text, std::string_view word) {
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    const void* hit = memmem(at, static_cast<size_t>(end - at), word.data(), word.size());
    if (!hit) return false;
    const char* found = static_cast<const char*>(hit);
    const char* after = found + word.size();
    if ((found == text.data() || !is_word(found[-1])) && (after == end || !is_word(*after)))
      return true;
    at = found + 1;
  }
  return false;
}

// The words under which a variable may stand in a file.
std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words = {name};
  if (name.starts_with("FLAGS_")) words.push_back(name.substr(6));
  if (name.starts_with("JAX_")) {
    std::string lower = name;
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    words.push_back(lower);
  }
  return words;
}

// Names that wait to be found in some file.
class Search {
 public:
  explicit Search(const std::vector<std::string>& names) {
    for (const std::string& name : names)
      if (waiting_.size() < kMaxSearched) waiting_.emplace_back(name, words_of(name));
  }
  void look_into(std::string_view text) {
    std::erase_if(waiting_, [&](const auto& one) {
      const bool found = std::any_of(one.second.begin(), one.second.end(),
                                     [&](const auto& word) { return contains_word(text, word); });
      return found;
    });
  }
  bool done() const { return waiting_.empty(); }
  std::vector<std::string> missing() const {
    std::vector<std::string> names;
    for (const auto& [name, words] : waiting_) names.push_back(name);
    return names;
  }

 private:
  std::vector<std::pair<std::string, std::vector<std::string>>> waiting_;
};

bool holds_constants(const elf::Section& section) {
  return section.name.starts_with(".rodata") || section.name.starts_with(".lrodata") ||
         section.name.starts_with(".data");
}

void search_file(const Tree& tree, const std::string& path, Search& search) {
  const Result<MappedFile> file = tree.map(path);
  if (!file) return;
  if (path.ends_with(".py")) return search.look_into(file->bytes().text());
  for (const elf::Section& section : elf::read_sections(file->bytes()))
    if (holds_constants(section))
      search.look_into(file->bytes().text().substr(section.offset, section.size));
}

std::vector<std::string> read_by_nobody(const EnvironmentCase& examined,
                                        const std::vector<std::string>& names) {
  Search search(names);
  for (const InstalledFiles::Row& row : examined.files.rows()) {
    if (search.done()) break;
    if (row.record.path.ends_with(".py"))
      search_file(examined.tree, examined.files.path_of(row), search);
  }
  for (const Distribution& distribution : examined.all())
    for (const std::string& path : distribution.native_files)
      if (!search.done()) search_file(examined.tree, path, search);
  return search.missing();
}

// Whether somebody who reads it is here.
bool has_reader(const EnvironmentCase& examined, const KnownVariable& variable) {
  return std::any_of(variable.readers.begin(), variable.readers.end(), [&](std::string_view name) {
    if (name == "system") return true;
    for (const std::string& site : examined.interpreter.site_directories)
      if (examined.tree.stat(site + "/" + std::string(name))) return true;
    return false;
  });
}

// "TF_VAR_*" stands for all names that begin so.
const KnownVariable* find_known(std::string_view name) {
  for (const KnownVariable& known : known_variables())
    if (known.name == name || (known.name.ends_with('*') &&
                               name.starts_with(known.name.substr(0, known.name.size() - 1))))
      return &known;
  return nullptr;
}

const KnownVariable* nearest_known(const EnvironmentCase& examined, const std::string& name) {
  const KnownVariable* nearest = nullptr;
  size_t best = (name.size() < kLongName ? 1 : kMaxDistance) + 1;
  for (const KnownVariable& known : known_variables()) {
    if (known.name.ends_with('*') || known.name.size() > name.size() + kMaxDistance ||
        name.size() > known.name.size() + kMaxDistance)
      continue;
    const size_t distance = edit_distance(name, known.name);
    if (distance >= best || !has_reader(examined, known)) continue;
    best = distance;
    nearest = &known;
  }
  return nearest;
}

}  // namespace

const std::vector<KnownVariable>& known_variables() {
  static const std::vector<KnownVariable> kKnown = [] {
    std::vector<KnownVariable> known;
    for (const TableRow& row : table_rows(kTable, 3))
      known.push_back({row[0], split(row[1], ','), row[2]});
    return known;
  }();
  return kKnown;
}

bool looks_like_framework_variable(std::string_view name) {
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes), [&](std::string_view prefix) {
    return name.starts_with(prefix) && name.size() > prefix.size();
  });
}

SetVariables judge_variables(const EnvironmentCase& examined) {
  SetVariables result;
  std::vector<std::string> unknown;
  for (const auto& [name, value] : examined.options.variables) {
    const KnownVariable* known = find_known(name);
    if (known && !has_reader(examined, *known)) result.unread.push_back(name);
    if (known) continue;
    if (looks_like_framework_variable(name)) unknown.push_back(name);
  }
  if (unknown.empty()) return result;
  for (const std::string& name : read_by_nobody(examined, unknown)) {
    if (const KnownVariable* meant = nearest_known(examined, name))
      result.misspelled.push_back({name, std::string(meant->name)});
    else
      result.unread.push_back(name);
  }
  std::sort(result.unread.begin(), result.unread.end());
  return result;
}

}  // namespace cohabit
