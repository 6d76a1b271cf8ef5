// A log of 100 MB has a few lines that matter. RE2 says which literals a text must contain for each
// expression to match (FilteredRE2); the literals are searched for in one pass (literals.h), and
// only lines that contain one are shown to the expressions that it belongs to, together with the
// lines after it: many messages go on there. Bytes are bytes (Latin-1): no encoding is wrong.
#include "explain/matcher.h"

#include <fmt/format.h>
#include <re2/filtered_re2.h>
#include <re2/re2.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "explain/literals.h"
#include "explain/log_text.h"
#include "explain/shapes.h"

namespace cohabit::explain {
namespace {

constexpr size_t kWindowLines = 4;
// The same line again, but for its numbers, says nothing new; so many are still looked at, for what
// follows them may differ.
constexpr unsigned kSameLines = 8;
// Lines that are no repetition and have the same literals: the same expressions have been tried on
// so many of them.
constexpr uint32_t kSameLiterals = 500;
constexpr size_t kRemembered = 1 << 14;

std::string what_is(const Mechanism& mechanism, const std::string& pattern) {
  return fmt::format("data/mechanisms, {}: the pattern {}", mechanism.slug, pattern);
}

uint64_t hash_of(const std::vector<int>& words) {
  uint64_t hash = words.size();
  for (const int word : words) {
    hash = (hash ^ static_cast<uint64_t>(word)) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 32U;
  }
  return hash;
}

}  // namespace

struct Matcher::Window {
  std::string text;
  size_t first_line = 0;  // its length
  size_t begin = 0;       // in the log
  static Window at(std::string_view text, size_t hit);
};

// Of the line that a hit is in; of endless lines what is around the hit.
Matcher::Window Matcher::Window::at(std::string_view text, size_t hit) {
  Window window;
  window.begin = line_begin(text, hit);
  size_t at = window.begin;
  for (size_t lines = 0; lines < kWindowLines && at < text.size(); lines++) {
    const size_t end = line_end(text, lines == 0 ? hit : at);
    if (lines > 0) window.text += '\n';
    window.text += without_prefix(text.substr(at, end - at));
    if (lines == 0) {
      window.first_line = window.text.size();
    }
    at = end;
    // "\r\n" is one end of a line; empty lines do not count.
    while (at < text.size() && ends_line(text[at])) at++;
  }
  return window;
}

struct Matcher::Search {
  std::string_view text;
  std::vector<Match> matches;
  std::vector<uint32_t> counts;  // by pattern
  Counts shapes;
  std::unordered_map<uint64_t, uint32_t> looks;                // by the literals of a line
  std::unordered_map<uint64_t, std::vector<int>> expressions;  // by the literals of a window
  size_t next = 0;
};

Matcher::Matcher() = default;
Matcher::Matcher(Matcher&&) noexcept = default;
Matcher& Matcher::operator=(Matcher&&) noexcept = default;
Matcher::~Matcher() = default;

Result<void> Matcher::add(const std::vector<Mechanism>& mechanisms) {
  RE2::Options options(RE2::Latin1);
  options.set_log_errors(false);
  const auto add_one = [&](uint32_t mechanism, uint32_t index, bool is_tell,
                           const std::string& pattern) -> Result<void> {
    int id = 0;
    if (expressions_->Add(pattern, options, &id) != RE2::NoError)
      return fail(what_is(mechanisms[mechanism], pattern) + " is not a regular expression of RE2");
    shapes_->name_numbers_of(pattern);
    patterns_.push_back({mechanism, index, is_tell});
    return {};
  };
  for (uint32_t i = 0; i < mechanisms.size(); i++) {
    for (uint32_t j = 0; j < mechanisms[i].signals.size(); j++)
      if (auto done = add_one(i, j, false, mechanisms[i].signals[j].pattern); !done) return done;
    for (uint32_t j = 0; j < mechanisms[i].tells.size(); j++)
      if (auto done = add_one(i, j, true, mechanisms[i].tells[j].pattern); !done) return done;
  }
  return {};
}

Result<void> Matcher::compile(const std::vector<Mechanism>& mechanisms) {
  std::vector<std::string> words;
  expressions_->Compile(&words);
  std::vector<int> unfiltered;
  expressions_->AllPotentials({}, &unfiltered);
  if (!unfiltered.empty()) {
    std::string patterns;
    for (const int id : unfiltered) {
      const Pattern& pattern = patterns_[static_cast<size_t>(id)];
      const Mechanism& mechanism = mechanisms[pattern.mechanism];
      patterns.append("\n").append(
          what_is(mechanism, pattern.is_tell ? mechanism.tells[pattern.index].pattern
                                             : mechanism.signals[pattern.index].pattern));
    }
    return fail(
        fmt::format("these patterns have no literal of {} characters that every match "
                    "contains:{}",
                    Literals::kShortest, patterns));
  }
  literals_ = std::make_unique<Literals>(std::move(words));
  return {};
}

Result<Matcher> Matcher::make(const std::vector<Mechanism>& mechanisms) {
  Matcher matcher;
  matcher.expressions_ = std::make_unique<re2::FilteredRE2>(static_cast<int>(Literals::kShortest));
  matcher.shapes_ = std::make_unique<Shapes>();
  if (auto done = matcher.add(mechanisms); !done) return tl::unexpected<Error>(done.error());
  if (auto done = matcher.compile(mechanisms); !done) return tl::unexpected<Error>(done.error());
  return matcher;
}

// Not if it was there before, but for numbers that say nothing.
bool Matcher::is_worth_a_look(Search& search, std::string_view line) const {
  const Shapes::Shape shape = shapes_->of(line);
  if (search.shapes.count(shape.all, kSameLines) < kSameLines) return true;
  return shape.named != shape.all && search.shapes.count(shape.named, 1) == 0;
}

void Matcher::words_of(std::string_view text, std::vector<int>& words) const {
  words.clear();
  for (size_t at = 0; (at = literals_->find(text, at)) != text.npos; at++)
    literals_->words_at(text, at, words);
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
}

const std::vector<int>& Matcher::expressions_for(Search& search,
                                                 const std::vector<int>& words) const {
  if (search.expressions.size() >= kRemembered) search.expressions.clear();
  const auto [entry, is_new] = search.expressions.try_emplace(hash_of(words));
  if (is_new) expressions_->AllPotentials(words, &entry->second);
  return entry->second;
}

bool Matcher::match(int id, const Window& window, Match& match) const {
  const RE2& expression = expressions_->GetRE2(id);
  std::vector<re2::StringPiece> groups(static_cast<size_t>(expression.NumberOfCapturingGroups()) +
                                       1);
  const re2::StringPiece piece(window.text);
  if (!expression.Match(piece, 0, piece.size(), RE2::UNANCHORED, groups.data(),
                        static_cast<int>(groups.size())))
    return false;
  // What begins in a later line is found there.
  if (static_cast<size_t>(groups[0].data() - piece.data()) > window.first_line) return false;
  const Pattern& pattern = patterns_[static_cast<size_t>(id)];
  match = {pattern.mechanism,
           pattern.index,
           pattern.is_tell,
           window.begin,
           window.text.substr(0, window.first_line),
           {}};
  for (const auto& [name, group] : expression.NamedCapturingGroups())
    if (const re2::StringPiece value = groups[static_cast<size_t>(group)]; !value.empty())
      match.captures.push_back({name, std::string(value.data(), value.size())});
  return true;
}

// Of a line all matches are kept, or none: one of them may take the line from another.
void Matcher::try_expressions(Search& search, const Window& window,
                              const std::vector<int>& ids) const {
  const auto is_wanted = [&](int id) {
    return search.counts[static_cast<size_t>(id)] < kMaxMatches;
  };
  if (std::none_of(ids.begin(), ids.end(), is_wanted)) return;
  std::vector<Match> found;
  bool any_wanted = false;
  for (const int id : ids) {
    Match one;
    if (!match(id, window, one)) continue;
    any_wanted |= is_wanted(id);
    search.counts[static_cast<size_t>(id)]++;
    found.push_back(std::move(one));
  }
  if (any_wanted) std::move(found.begin(), found.end(), std::back_inserter(search.matches));
}

void Matcher::look_at(Search& search, size_t hit) const {
  const size_t begin = line_begin(search.text, hit);
  const size_t end = line_end(search.text, hit);
  search.next = std::max(end, hit + 1);
  const std::string_view line = search.text.substr(begin, end - begin);
  if (!is_worth_a_look(search, line)) return;
  std::vector<int> words;
  words_of(line, words);
  if (search.looks.size() >= kRemembered) search.looks.clear();
  if (search.looks[hash_of(words)]++ >= kSameLiterals) return;
  const Window window = Window::at(search.text, hit);
  words_of(window.text, words);
  try_expressions(search, window, expressions_for(search, words));
}

std::vector<Match> Matcher::find(std::string_view text) const {
  Search search{text, {}, std::vector<uint32_t>(patterns_.size()), {}, {}, {}, 0};
  LiteralScan scan(*literals_, text);
  while (!scan.at_end())
    for (const size_t hit : scan.next_block())
      if (hit >= search.next && literals_->any_begins(text, hit)) look_at(search, hit);
  std::stable_sort(search.matches.begin(), search.matches.end(),
                   [](const Match& a, const Match& b) { return a.at < b.at; });
  return std::move(search.matches);
}

}  // namespace cohabit::explain
