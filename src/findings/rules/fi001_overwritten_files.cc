// Installers do not look whether a path is taken: the wheel that is unpacked last wins, and uv and
// pip unpack in parallel, so which one that is differs from run to run. RECORD keeps the hash of
// what each distribution brought; the file on disk tells who won. Sizes decide nearly always: 139
// files of an environment with two CUDA majors differ, and 8 had to be hashed.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "facts/python/entry_points.h"
#include "facts/python/requirement.h"
#include "findings/expected.h"
#include "findings/rules/rules.h"

namespace cohabit::rules {
namespace {

constexpr uint64_t kHashBudget = 64 << 20;  // bytes read for one pair
constexpr size_t kMaxLibraries = 10;
constexpr size_t kShown = 3;  // files by name

using Row = InstalledFiles::Row;

struct Different {
  const Row* first;
  const Row* second;
  const Row* winner = nullptr;  // null: undecided
  bool neither = false;         // what is on disk is of neither
};

struct Pair {
  size_t claimed = 0;
  std::vector<Different> different;
};

bool is_library(std::string_view path) {
  return path.find(".so") != path.npos && !path.ends_with(".py");
}

// "libcudnn.so.9": a version in the name says that others are meant to link with it. An extension
// module or a plug-in is opened by its own package, which was overwritten with it.
bool is_shared_with_others(std::string_view path) {
  const size_t at = path.rfind(".so.");
  return at != path.npos && at + 4 < path.size() && path[at + 4] >= '0' && path[at + 4] <= '9';
}

// "module:function" of a script that its installer made for an entry point; empty: it is none.
std::string call_of(const EnvironmentCase& examined, const Row& row) {
  const std::string_view path = row.record.path;
  if (path.find("/bin/") == path.npos) return "";
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const auto text = examined.tree.read_text(examined.owner(row).metadata + "/entry_points.txt");
  for (const Script& script : parse_scripts(text.value_or("")))
    if (script.name == name) return script.call;
  return "";
}

// Installers write scripts for one call in different words: that is no loss.
bool are_one_script(const EnvironmentCase& examined, const Row& first, const Row& second) {
  const std::string call = call_of(examined, first);
  return !call.empty() && call == call_of(examined, second);
}

// `__import__("pkg_resources").declare_namespace(__name__)` and pkgutil's extend_path: all who
// share the package bring such a file, each in words of its own, and any of them does.
bool declare_one_namespace(const EnvironmentCase& examined, const Row& first, const Row& second) {
  constexpr int64_t kLargest = 1024;
  const auto fits = [](const Row& row) {
    return row.record.path.ends_with("/__init__.py") && row.record.size >= 0 &&
           row.record.size <= kLargest;
  };
  if (!fits(first) || !fits(second)) return false;
  for (const Row* row : {&first, &second})
    if (const auto text = examined.tree.read_text(examined.files.path_of(*row), kLargest))
      return text->find("extend_path(__path__") != text->npos ||
             text->find("declare_namespace(__name__") != text->npos;
  return false;
}

std::map<std::pair<uint32_t, uint32_t>, Pair> find_pairs(const EnvironmentCase& examined) {
  std::map<std::pair<uint32_t, uint32_t>, Pair> pairs;
  const std::vector<Row>& rows = examined.files.rows();
  for (const std::vector<uint32_t>& group : examined.files.claimed_twice()) {
    const Row& any = rows[group.front()];
    if (any.record.path.ends_with(".pyc") || is_by_the_way(any.record.path)) continue;
    for (size_t i = 0; i < group.size(); i++)
      for (size_t j = i + 1; j < group.size(); j++) {
        const Row &first = rows[group[i]], &second = rows[group[j]];
        Pair& pair = pairs[{first.distribution, second.distribution}];
        pair.claimed++;
        const bool known = !first.record.hash.empty() && !second.record.hash.empty();
        if (known && first.record.hash != second.record.hash &&
            !are_one_script(examined, first, second) &&
            !declare_one_namespace(examined, first, second))
          pair.different.push_back({&first, &second});
      }
  }
  return pairs;
}

void decide(const EnvironmentCase& examined, Different& file, uint64_t& budget) {
  const std::string path = examined.files.path_of(*file.first);
  const auto status = examined.tree.stat(path);
  if (!status) return;
  const auto size = static_cast<int64_t>(status->size);
  const auto fits = [&](const Row* row) {
    return row->record.size < 0 || row->record.size == size;
  };
  const bool first = fits(file.first), second = fits(file.second);
  if (first != second) {
    file.winner = first ? file.first : file.second;
    return;
  }
  if (!first) {
    file.neither = true;
    return;
  }
  if (status->size > budget) return;
  budget -= status->size;
  const auto hash = record_hash(examined.tree, path);
  if (!hash) return;
  if (*hash == file.first->record.hash) file.winner = file.first;
  if (*hash == file.second->record.hash) file.winner = file.second;
  file.neither = file.winner == nullptr;
}

// Of files that are not there yet, who writes last is known otherwise.
void foresee(const EnvironmentCase& examined, Different& file, const Writers& writers) {
  const auto found = writers.find(examined.files.path_of(*file.first));
  if (found == writers.end() || found->second.empty()) return;
  for (const Row* row : {file.first, file.second})
    if (normal_name(examined.owner(*row).name) == normal_name(found->second)) file.winner = row;
  file.neither = file.winner == nullptr;  // a third claims it too
}

// How it is said: of what has happened, or of what would.
struct Words {
  const char* overwrote;
  const char* overwrote_each_other;
  const char* is;
};
constexpr Words kHappened = {"has overwritten", "have overwritten", "is"};
constexpr Words kExpected = {"would overwrite", "would overwrite", "would be"};

bool is_of_neither(const Pair& pair) {
  return std::all_of(pair.different.begin(), pair.different.end(),
                     [](const Different& file) { return file.neither; });
}

// As in the RECORD; "../../../bin/tool" as the file that it is.
std::string name_of(const EnvironmentCase& examined, const Row& row) {
  return row.record.path.starts_with("../") ? examined.files.path_of(row)
                                            : std::string(row.record.path);
}

std::string headline(const EnvironmentCase& examined, const Pair& pair, size_t by_first,
                     size_t by_second, const Words& words) {
  const Distribution& first = examined.owner(*pair.different.front().first);
  const Distribution& second = examined.owner(*pair.different.front().second);
  const std::string files = count_of(pair.different.size(), "file");
  if (by_first == pair.different.size())
    return fmt::format("{} {} {} of {}", label(first), words.overwrote, files, label(second));
  if (by_second == pair.different.size())
    return fmt::format("{} {} {} of {}", label(second), words.overwrote, files, label(first));
  if (is_of_neither(pair))
    return fmt::format(
        "{} and {} both install {} with different content, and what is there is of neither",
        label(first), label(second), files);
  if (by_first > 0 && by_second > 0)
    return fmt::format(
        "{} and {} {} each other: of {}, {} are of the first and {} of "
        "the second",
        label(first), label(second), words.overwrote_each_other, files, by_first, by_second);
  return fmt::format("{} and {} both install {} with different content", label(first),
                     label(second), files);
}

void add_requirers(const EnvironmentCase& examined, const Distribution& of, Finding& finding) {
  std::vector<std::string> names;
  for (const Distribution& other : examined.all())
    for (const std::string& text : other.requires_dist) {
      const auto requirement = PackageRequirement::parse(text);
      if (!requirement || normal_name(requirement->name) != normal_name(of.name)) continue;
      names.push_back(fmt::format("{} ({})", label(other), requirement->specifiers.text()));
      break;
    }
  if (!names.empty())
    finding.evidence.push_back(
        fact("declared", fmt::format("{} is required by {}", of.name, list_some(names))));
}

void describe(const EnvironmentCase& examined, const Pair& pair, const Words& words,
              Finding& finding) {
  const Distribution& first = examined.owner(*pair.different.front().first);
  const Distribution& second = examined.owner(*pair.different.front().second);
  finding.evidence.push_back(
      fact("file", fmt::format("{} claimed by both, {} with different content",
                               count_of(pair.claimed, "file"), pair.different.size())));
  std::vector<std::string> libraries, others;
  for (const Different& file : pair.different) {
    const bool is_one = is_library(file.first->record.path);
    const Row* on_disk = file.winner;
    (is_one ? libraries : others)
        .push_back(fmt::format("{} {} {}", name_of(examined, *file.first), words.is,
                               on_disk        ? "of " + examined.owner(*on_disk).name
                               : file.neither ? "of neither"
                                              : "undecided"));
    const std::string path = examined.files.path_of(*file.first);
    if (is_one && finding.libraries.size() < kMaxLibraries)
      finding.libraries.push_back(on_disk ? library_of(examined.owner(*on_disk), path)
                                          : Library{path, "", ""});
  }
  // What an import needs comes first.
  std::stable_partition(others.begin(), others.end(),
                        [](const std::string& text) { return text.find(".py ") != text.npos; });
  std::vector<std::string>& shown = libraries;
  shown.insert(shown.end(), others.begin(), others.end());
  for (size_t i = 0; i < std::min(shown.size(), kShown); i++)
    finding.evidence.push_back(fact("file", shown[i]));
  if (shown.size() > kShown)
    finding.evidence.push_back(fact("file", fmt::format("and {} more", shown.size() - kShown)));
  if (finding.libraries.empty())
    for (const Distribution* each : {&first, &second})
      finding.libraries.push_back(library_of(*each, each->metadata));
  add_requirers(examined, first, finding);
  add_requirers(examined, second, finding);
}

// Who was to work with the files that are gone: what requires their distribution.
void add_requirers_of(const EnvironmentCase& examined, const Distribution& lost, Reach& reach) {
  for (const Distribution& other : examined.all()) {
    const bool needs = std::any_of(
        other.requires_dist.begin(), other.requires_dist.end(), [&](const std::string& text) {
          const auto requirement = PackageRequirement::parse(text);
          return requirement && normal_name(requirement->name) == normal_name(lost.name);
        });
    if (needs) reach.distributions.push_back(other.name);
  }
}

Reach reach_of(const EnvironmentCase& examined, const Pair& pair) {
  Reach reach;
  bool first_lost = false, second_lost = false;
  for (const Different& file : pair.different) {
    if (!is_library(file.first->record.path)) continue;
    reach.files.push_back(examined.files.path_of(*file.first));
    first_lost = first_lost || file.winner != file.first;
    second_lost = second_lost || file.winner != file.second;
  }
  for (const auto& [lost, row] : {std::pair(first_lost, pair.different.front().first),
                                  std::pair(second_lost, pair.different.front().second)})
    if (lost) add_requirers_of(examined, examined.owner(*row), reach);
  return reach;
}

// Of two builds of one thing the one whose files are there is kept.
void advise(const EnvironmentCase& examined, const Distribution& first, const Distribution& second,
            Finding& finding) {
  if (finding.severity == Severity::kError) {
    finding.help.push_back(
        {"install what needs the one and what needs the other into separate "
         "environments, or choose builds that need the same one: nothing at "
         "launch can repair a file that is gone",
         "", Safety::kManual});
    return;
  }
  finding.help.push_back(
      {fmt::format(
           "keep one of the two: remove both, since removing one deletes files of the other, "
           "and install {} again",
           label(second)),
       installer_command(examined, "uninstall", {first.name, second.name}) + " && " +
           installer_command(examined, "install",
                             {"--no-deps", second.name + "==" + second.version}),
       Safety::kUnsafe});
}

// `writers`: of an environment that is not there yet; null: its files tell.
std::optional<Finding> judge(const EnvironmentCase& examined, Pair& pair, const Writers* writers) {
  const bool stays =
      writers &&
      std::none_of(pair.different.begin(), pair.different.end(), [&](const Different& file) {
        return writers->contains(examined.files.path_of(*file.first));
      });
  if (stays) return std::nullopt;
  const Words& words = writers ? kExpected : kHappened;
  const Distribution& first = examined.owner(*pair.different.front().first);
  const Distribution& second = examined.owner(*pair.different.front().second);
  if (normal_name(first.name) == normal_name(second.name)) return std::nullopt;  // PY004
  uint64_t budget = kHashBudget;
  size_t by_first = 0, by_second = 0;
  bool shared = false, decided = true, a_thirds = true;
  for (Different& file : pair.different) {
    if (writers)
      foresee(examined, file, *writers);
    else
      decide(examined, file, budget);
    by_first += file.winner == file.first ? 1 : 0;
    by_second += file.winner == file.second ? 1 : 0;
    decided = decided && (file.winner || file.neither);
    a_thirds = a_thirds && file.neither;
    shared = shared || is_shared_with_others(file.first->record.path);
  }
  if (writers && a_thirds) return std::nullopt;  // its pairs with the two tell
  Finding finding;
  const bool serious = shared && first.version != second.version;
  finding.severity = serious ? Severity::kError : Severity::kWarning;
  finding.certainty = decided ? Certainty::kSimulated : Certainty::kDeclared;
  finding.headline = headline(examined, pair, by_first, by_second, words);
  if (serious) finding.reach = reach_of(examined, pair);
  describe(examined, pair, words, finding);
  if (writers && !serious)
    finding.help.push_back(
        {fmt::format("choose one of {} and {}: both bring these files", first.name, second.name),
         "", Safety::kManual});
  else if (by_first > by_second)
    advise(examined, second, first, finding);
  else
    advise(examined, first, second, finding);
  return finding;
}

std::vector<Finding> judge_all(const EnvironmentCase& examined, const Writers* writers) {
  std::vector<Finding> findings;
  for (auto& [who, pair] : find_pairs(examined)) {
    if (pair.different.empty()) continue;
    if (auto finding = judge(examined, pair, writers)) findings.push_back(std::move(*finding));
  }
  return findings;
}

std::vector<Finding> check(const EnvironmentCase& examined) {
  return judge_all(examined, nullptr);
}

}  // namespace

std::vector<Finding> expect_overwritten(const EnvironmentCase& examined, const Writers& writers) {
  return judge_all(examined, &writers);
}

const Rule kFi001 = {
    "FI001",
    "overwritten-files",
    Severity::kError,
    "Two distributions install the same path with different content: one of them lost its file.",
    "  Paths that the RECORDs of two distributions name with different hashes, grouped by pair, "
    "and "
    "whose\n"
    "  content is on disk. An error if shared libraries with a version in their name are among "
    "them "
    "and\n"
    "  the versions of the distributions differ; else a warning. Files with the same content are "
    "no\n"
    "  finding.",
    "  The loser's users load a library that was built for something else: torch for CUDA 13 gets "
    "a "
    "cuDNN\n"
    "  for CUDA 12. Which one wins may change with every installation, and removing either "
    "distribution\n"
    "  deletes the other's files.",
    "  nvidia-cudnn-cu12 9.28.0.42 over nvidia-cudnn-cu13 9.26.0.51: both install\n"
    "  nvidia/cudnn/lib/libcudnn.so.9.",
    "  Separate environments, or builds that need the same distribution. Of distributions that are "
    "builds\n"
    "  of one thing (opencv-python, opencv-python-headless), remove all and install one.",
    "  Distributions without RECORD (conda's own, old eggs) are not compared. Files of one size "
    "are "
    "told\n"
    "  apart by their hash, up to 64 MiB for each pair. Files that declare one namespace "
    "(extend_path,\n"
    "  declare_namespace) count as the same.",
    nullptr,
    check,
};

}  // namespace cohabit::rules
