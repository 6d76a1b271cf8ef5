// A name is read if it stands as a word in Python code or in the constants of a native file. Two
// families are put together at run time from parts: Paddle's FLAGS_x is defined as x, JAX's JAX_X
// as jax_x.
#include "findings/variables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <cctype>

#include "base/paths.h"
#include "base/rows.h"
#include "facts/elf/sections.h"
#include "findings/spelling.h"

namespace cohabit {
namespace {

constexpr std::string_view kTable =
#include "data/variables.inc"
    ;
constexpr std::string_view kPrefixes[] = {
    "CUDA_",   "CUDNN_",    "CUBLAS_",        "NCCL_",       "PYTORCH_", "TORCH_",    "TF_",
    "XLA_",    "JAX_",      "FLAGS_",         "TRITON_",     "CUPY_",    "CT2_",      "ORT_",
    "OMP_",    "GOMP_",     "KMP_",           "MKL_",        "LD_",      "OPENBLAS_", "NUMEXPR_",
    "VECLIB_", "CUBLASLT_", "TORCHINDUCTOR_", "TORCHDYNAMO_"};
constexpr std::string_view kPythonItself = "python";  // as a reader
constexpr size_t kMaxSearched = 32;
constexpr size_t kMaxDistance = 2;
constexpr size_t kLongName = 12;    // shorter ones may differ by one letter only
constexpr size_t kTellingName = 9;  // shorter ones are near to too many others

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
  // Those that stand in a text.
  void look_into(std::string_view text, std::vector<std::string>& names) const {
    for (const auto& [name, words] : waiting_)
      if (std::any_of(words.begin(), words.end(),
                      [&](const auto& word) { return contains_word(text, word); }))
        names.push_back(name);
  }
  void take(const std::vector<std::string>& names, const std::string& path) {
    std::erase_if(waiting_, [&](const auto& one) {
      const bool found = std::find(names.begin(), names.end(), one.first) != names.end();
      if (found) found_.push_back({one.first, path});
      return found;
    });
  }
  const std::vector<SetVariables::Read>& found() const { return found_; }
  bool done() const { return waiting_.empty(); }
  std::vector<std::string> missing() const {
    std::vector<std::string> names;
    for (const auto& [name, words] : waiting_) names.push_back(name);
    return names;
  }

 private:
  std::vector<std::pair<std::string, std::vector<std::string>>> waiting_;
  std::vector<SetVariables::Read> found_;
};

bool holds_constants(const elf::Section& section) {
  return section.name.starts_with(".rodata") || section.name.starts_with(".lrodata") ||
         section.name.starts_with(".data");
}

// The text of a Python file, the constants of a native one.
template <class Look>
void read_texts(Bytes file, const std::string& path, const Look& look) {
  if (path.ends_with(".py")) return look(file.text());
  for (const elf::Section& section : elf::read_sections(file))
    if (holds_constants(section)) look(file.text().substr(section.offset, section.size));
}

void search_file(const Tree& tree, const std::string& path, Search& search) {
  const Result<MappedFile> map = tree.map(path);
  if (!map) return;
  const std::string kind = fmt::format("which of {}", fmt::join(search.missing(), ","));
  const auto names = map->extract(kind, [&](Bytes file) {
    std::vector<std::string> found;
    read_texts(file, path, [&](std::string_view text) { search.look_into(text, found); });
    return found;
  });
  search.take(names, path);
}

void search_all(const EnvironmentCase& examined, Search& search) {
  for (const InstalledFiles::Row& row : examined.files.rows()) {
    if (search.done()) break;
    if (row.record.path.ends_with(".py"))
      search_file(examined.tree, examined.files.path_of(row), search);
  }
  for (const Distribution& distribution : examined.all())
    for (const std::string& path : distribution.native_files)
      if (!search.done()) search_file(examined.tree, path, search);
}

// Those who read it and are here; empty: nobody.
std::string readers_of(const EnvironmentCase& examined, const KnownVariable& variable) {
  std::vector<std::string> names;
  for (const std::string_view name : variable.readers) {
    if (name == "system" || name == kPythonItself)
      return fmt::format("not of an environment: {}", variable.source);
    for (const std::string& site : examined.interpreter.site_directories)
      if (examined.tree.stat(fmt::format("{}/{}", site, name))) {
        names.emplace_back(name);
        break;
      }
  }
  return fmt::format("{}", fmt::join(names, ", "));
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
    if (distance >= best || readers_of(examined, known).empty()) continue;
    best = distance;
    nearest = &known;
  }
  return nearest;
}

std::string without_blanks(std::string_view name) {
  std::string letters(name);
  std::erase(letters, '_');
  return letters;
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

bool stands_in_file(const Tree& tree, const std::string& path, std::string_view word) {
  const Result<MappedFile> map = tree.map(path);
  if (!map) return false;
  bool found = false;
  read_texts(map->bytes(), path,
             [&](std::string_view text) { found = found || contains_word(text, word); });
  return found;
}

bool stands_in_package(const Tree& tree, const Interpreter& interpreter,
                       const std::vector<std::string_view>& files, std::string_view word) {
  for (const std::string& site : interpreter.site_directories)
    for (const std::string_view file : files) {
      const std::string path = fmt::format("{}/{}", site, file);
      const std::string pattern = last_part(path), directory = directory_of(path);
      for (const std::string& name : tree.list(directory))
        if (fnmatch(pattern.c_str(), name.c_str(), 0) == 0 &&
            stands_in_file(tree, fmt::format("{}/{}", directory, name), word))
          return true;
    }
  return false;
}

bool looks_like_framework_variable(std::string_view name) {
  const bool has_prefix =
      std::any_of(std::begin(kPrefixes), std::end(kPrefixes), [&](std::string_view prefix) {
        return name.starts_with(prefix) && name.size() > prefix.size();
      });
  // PYTHONPATHS, CUBA_VISIBLE_DEVICES: where the first letters say nothing, one letter only. Not
  // PYTHON_HOME, which is a name that programs have for something else.
  const auto is_near = [&](const KnownVariable& known) {
    const size_t longer = std::max(name.size(), known.name.size());
    const size_t shorter = std::min(name.size(), known.name.size());
    return longer - shorter <= 1 && shorter >= kTellingName && !known.name.ends_with('*') &&
           edit_distance(name, known.name) == 1 &&
           edit_distance(without_blanks(name), without_blanks(known.name)) == 1;
  };
  return has_prefix || std::any_of(known_variables().begin(), known_variables().end(), is_near);
}

SetVariables judge_variables(const EnvironmentCase& examined, const VariableMap& variables) {
  SetVariables result;
  std::vector<std::string> unknown;
  for (const auto& [name, value] : variables) {
    const KnownVariable* known = find_known(name);
    if (known && known->readers.front() == kPythonItself) continue;
    if (known) {
      std::string by = readers_of(examined, *known);
      if (by.empty())
        result.unread.push_back(name);
      else
        result.read.push_back({name, std::move(by)});
    } else if (looks_like_framework_variable(name)) {
      unknown.push_back(name);
    }
  }
  if (unknown.empty()) return result;
  Search search(unknown);
  search_all(examined, search);
  result.read.insert(result.read.end(), search.found().begin(), search.found().end());
  for (const std::string& name : search.missing()) {
    if (const KnownVariable* meant = nearest_known(examined, name))
      result.misspelled.push_back({name, std::string(meant->name)});
    else
      result.unread.push_back(name);
  }
  std::sort(result.unread.begin(), result.unread.end());
  return result;
}

std::vector<Finding> unread_variables(const SetVariables& set) {
  std::vector<Finding> findings;
  for (const auto& [name, meant] : set.misspelled) {
    Finding finding;
    finding.severity = Severity::kWarning;
    finding.certainty = Certainty::kTable;
    finding.headline = fmt::format("nobody here reads {}: {} is meant?", name, meant);
    finding.evidence.push_back(
        fact("search", fmt::format("{} stands in no file of this environment", name)));
    finding.help.push_back({fmt::format("rename it to {}", meant), "", Safety::kManual});
    findings.push_back(std::move(finding));
  }
  if (set.unread.empty()) return findings;
  Finding finding;
  finding.certainty = Certainty::kTable;
  finding.headline = fmt::format("{} set that nobody here reads: {}",
                                 set.unread.size() == 1 ? "a variable is" : "variables are",
                                 list_some(set.unread, 8));
  finding.evidence.push_back(
      fact("search",
           "neither the table of known variables nor the files of this environment name a "
           "reader"));
  findings.push_back(std::move(finding));
  return findings;
}

}  // namespace cohabit
