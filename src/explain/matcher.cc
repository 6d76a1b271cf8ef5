// A log of 100 MB has a few lines that matter. RE2 says which literals a text must contain for each
// expression to match (FilteredRE2); the literals are searched for in one pass (literals.h), and
// only lines that contain one are shown to the expressions that it belongs to, together with the
// lines after it: many messages go on there. Bytes are bytes (Latin-1): no encoding is wrong.
#include "explain/matcher.h"

#include <fmt/format.h>
#include <re2/filtered_re2.h>
#include <re2/re2.h>

#include <algorithm>
#include <unordered_map>

#include "explain/literals.h"
#include "explain/log_text.h"

namespace cohabit::explain {
namespace {

constexpr size_t kWindowLines = 4;
// The same line again, but for its numbers, says nothing new; so many are still looked at.
constexpr uint8_t kSameLines = 8;
constexpr size_t kMaxWindows = 100000;

std::string what_is(const Mechanism& mechanism, const std::string& pattern) {
  return fmt::format("data/mechanisms, {}: the pattern {}", mechanism.slug, pattern);
}

// Equal for lines that differ in their numbers only.
uint64_t shape_of(std::string_view line) {
  uint64_t hash = 1469598103934665603U;
  bool in_number = false;
  for (const char c : line) {
    const bool digit = c >= '0' && c <= '9';
    if (digit && in_number) continue;
    in_number = digit;
    hash = (hash ^ static_cast<unsigned char>(digit ? '0' : c)) * 1099511628211U;
  }
  return hash;
}

struct Window {
  std::string text;
  size_t first_line = 0;  // its length
  size_t begin = 0;       // in the log
};

// Of the line that a hit is in; of endless lines what is around the hit.
Window window_at(std::string_view text, size_t hit) {
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

}  // namespace

struct Matcher::Search {
  std::string_view text;
  std::vector<Match> matches;
  std::vector<uint32_t> counts;  // by pattern
  std::unordered_map<uint64_t, uint8_t> shapes;
  size_t windows = 0;
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
  if (auto done = matcher.add(mechanisms); !done) return tl::unexpected<Error>(done.error());
  if (auto done = matcher.compile(mechanisms); !done) return tl::unexpected<Error>(done.error());
  return matcher;
}

void Matcher::keep(Search& search, int id, size_t begin, std::string_view window,
                   size_t first_line) const {
  const RE2& expression = expressions_->GetRE2(id);
  std::vector<re2::StringPiece> groups(static_cast<size_t>(expression.NumberOfCapturingGroups()) +
                                       1);
  const re2::StringPiece piece(window.data(), window.size());
  if (!expression.Match(piece, 0, window.size(), RE2::UNANCHORED, groups.data(),
                        static_cast<int>(groups.size())))
    return;
  // What begins in a later line is found there.
  if (static_cast<size_t>(groups[0].data() - window.data()) > first_line) return;
  uint32_t& count = search.counts[static_cast<size_t>(id)];
  if (++count > kMaxMatches) return;
  const Pattern& pattern = patterns_[static_cast<size_t>(id)];
  Match match{pattern.mechanism,
              pattern.index,
              pattern.is_tell,
              begin,
              std::string(window.substr(0, first_line)),
              {}};
  for (const auto& [name, group] : expression.NamedCapturingGroups())
    if (const re2::StringPiece value = groups[static_cast<size_t>(group)]; !value.empty())
      match.captures.push_back({name, std::string(value.data(), value.size())});
  search.matches.push_back(std::move(match));
}

void Matcher::look_at(Search& search, size_t hit) const {
  const size_t begin = line_begin(search.text, hit);
  const size_t end = line_end(search.text, hit);
  search.next = std::max(end, hit + 1);
  if (uint8_t& seen = search.shapes[shape_of(search.text.substr(begin, end - begin))];
      seen++ >= kSameLines) {
    seen = kSameLines;
    return;
  }
  search.windows++;
  const Window window = window_at(search.text, hit);
  const std::string_view text = window.text;
  std::vector<int> words;
  for (size_t at = 0; (at = literals_->find(text, at)) != text.npos; at++)
    literals_->words_at(text, at, words);
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  std::vector<int> found;
  expressions_->AllPotentials(words, &found);
  for (const int id : found) keep(search, id, window.begin, text, window.first_line);
}

std::vector<Match> Matcher::find(std::string_view text) const {
  Search search{text, {}, std::vector<uint32_t>(patterns_.size()), {}, 0, 0};
  LiteralScan scan(*literals_, text);
  while (!scan.at_end() && search.windows < kMaxWindows)
    for (const size_t hit : scan.next_block())
      if (hit >= search.next && literals_->any_begins(text, hit)) look_at(search, hit);
  std::stable_sort(search.matches.begin(), search.matches.end(),
                   [](const Match& a, const Match& b) { return a.at < b.at; });
  return std::move(search.matches);
}

}  // namespace cohabit::explain
