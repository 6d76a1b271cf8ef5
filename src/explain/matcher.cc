// A log of 100 MB has a few lines that matter. What literals a text must contain for each
// expression to match is known (needs.h); they are searched for in one pass (literals.h), and only
// lines that contain one are shown to the expressions that it belongs to, together with the lines
// after it: many messages go on there. How often each is tried has a limit (effort.h). Bytes are
// bytes (Latin-1): no encoding is wrong.
#include "explain/matcher.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <mutex>
#include <tuple>

#include "base/together.h"
#include "explain/effort.h"
#include "explain/literals.h"
#include "explain/log_text.h"
#include "explain/needs.h"
#include "explain/shapes.h"

namespace cohabit::explain {
namespace {

constexpr size_t kWindowLines = 4;
constexpr size_t kMostFrames = 10;
// The same line again, but for its numbers, says nothing new; so many are still looked at, for what
// follows them may differ.
constexpr unsigned kSameLines = 8;
constexpr size_t kLastLines = 20;
constexpr size_t kLook = 500;  // what a look at a line costs, in bytes shown to an expression
// Two places of the text are compared where that lately was of use.
constexpr size_t kLinesBack = 16;  // a window's, and empty ones
constexpr size_t kWorthComparing = 2048;
constexpr unsigned kLongestWait = 63;

// What was seen in one part of a text is new again in the next: as few parts as there are commonly
// processors, of one size, so that none is waited for.
constexpr size_t kSmall = size_t{8} << 20;  // in one part
constexpr size_t kPart = size_t{64} << 20;  // at most
// The end of a text says most: a part of its own, for which nothing was seen before.
constexpr size_t kHasEnd = size_t{1} << 20;
constexpr size_t kEnd = size_t{32} << 10;

// Of a traceback; those of a crash ("line 7 in f") say where it was.
bool is_import_frame(std::string_view line) {
  return line.starts_with("  File \"<frozen importlib") && line.find(", in ") != line.npos;
}

}  // namespace

struct Matcher::Window {
  std::string text;
  size_t first_line = 0;  // its length
  size_t begin = 0;       // in the log
  void move_to(std::string_view log, size_t hit);
};

// Of the line that a hit is in; of endless lines what is around the hit.
void Matcher::Window::move_to(std::string_view log, size_t hit) {
  text.clear();
  begin = line_begin(log, hit);
  size_t at = begin;
  for (size_t lines = 0, frames = 0; lines < kWindowLines && at < log.size();) {
    const size_t end = line_end(log, lines == 0 ? hit : at);
    const std::string_view line = without_prefix(log.substr(at, end - at));
    // `python -v` shows those of the import system between a statement and its error.
    if (lines > 0 && frames < kMostFrames && (line.empty() || is_import_frame(line))) {
      frames++;
    } else {
      if (lines > 0) text += '\n';
      text += line;
      if (lines++ == 0) first_line = text.size();
    }
    at = end;
    // "\r\n" is one end of a line; empty lines do not count.
    while (at < log.size() && ends_line(log[at])) at++;
  }
}

// Compiled when it is tried first: most texts need few of them.
struct Matcher::Expression {
  std::once_flag once;
  std::unique_ptr<RE2> compiled;
};

struct Matcher::Search {
  Search(const Matcher& matcher, std::string_view searched, bool is_end)
      : text(searched),
        counts(matcher.patterns_.size()),
        met(matcher.needs_),
        effort(*matcher.triggers_, !is_end) {}
  std::string_view text;
  std::vector<Match> matches;
  std::vector<uint32_t> counts;  // by pattern
  Counts shapes;
  MetNeeds met;
  Effort effort;
  Places places;
  std::vector<int> at_hit;  // words
  std::vector<int> words;   // of the window
  Window window;
  size_t next = 0;                // what is before was looked at
  size_t earlier = 0;             // where the line was last, if it was there before; npos
  unsigned wait = 0, waited = 0;  // repetitions until two places are compared again
};

Matcher::Matcher()
    : patterns_(patterns_of(known_mechanisms())),
      first_last_line_(patterns_.size()),
      needs_(needs_of_patterns()),
      triggers_(std::make_unique<Triggers>(needs_, patterns_)),
      literals_(std::make_unique<Literals>(
          std::vector<std::string>(needs_.words.begin(), needs_.words.end()))),
      shapes_(std::make_unique<Shapes>()) {
  for (const Pattern& pattern : patterns_) shapes_->name_numbers_of(pattern.text);
  for (const Pattern& pattern : last_line_patterns_of(known_mechanisms()))
    patterns_.push_back(pattern);
  expressions_ = std::make_unique<Expression[]>(patterns_.size());
}

Matcher::~Matcher() = default;

Matcher::Look Matcher::look_for(Search& search, size_t begin, size_t end) const {
  const Shapes::Shape shape = shapes_->of(search.text.substr(begin, end - begin));
  search.earlier = search.places.exchange(shape.all, begin);
  const unsigned before = search.shapes.count(shape.all, kSameLines);
  if (before == 0) return Look::kAll;
  if (shape.named != shape.all && search.shapes.count(shape.named, 1) == 0) return Look::kAll;
  return before < kSameLines ? Look::kWhatFollows : Look::kNone;
}

void Matcher::words_of(std::string_view text, std::vector<int>& words) const {
  words.clear();
  for (size_t at = 0; (at = literals_->find(text, at)) != text.npos; at++)
    literals_->words_at(text, at, words);
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
}

// That each can be compiled was seen when the table of needs was made.
const RE2& Matcher::expression(size_t id) const {
  Expression& expression = expressions_[id];
  std::call_once(expression.once, [&] {
    RE2::Options options(RE2::Latin1);
    options.set_log_errors(false);
    expression.compiled = std::make_unique<RE2>(safe_for_latin1(patterns_[id].text), options);
  });
  return *expression.compiled;
}

// What a pattern is shown of a window; `$` is the end of that.
std::string_view Matcher::shown_of(const Window& window, size_t id) const {
  return std::string_view(window.text)
      .substr(0, patterns_[id].goes_on ? window.text.npos : window.first_line);
}

bool Matcher::matches(size_t id, const Window& window) const {
  const std::string_view shown = shown_of(window, id);
  const re2::StringPiece text(shown.data(), shown.size());
  re2::StringPiece all;
  // Where it begins costs a second search. What begins in a later line is found there.
  const int groups = patterns_[id].goes_on ? 1 : 0;
  return expression(id).Match(text, 0, text.size(), RE2::UNANCHORED, &all, groups) &&
         (groups == 0 || static_cast<size_t>(all.data() - text.data()) <= window.first_line);
}

std::string Matcher::line_of(std::string_view text, const Match& match) {
  Window window;
  window.move_to(text, match.hit);
  return window.text.substr(0, window.first_line);
}

void Matcher::add_captures(std::string_view text, const Match& match,
                           std::vector<Capture>& captures) const {
  const RE2& wanted = expression(match.pattern);
  const auto is_there = [&](const auto& name) {
    return std::any_of(captures.begin(), captures.end(),
                       [&](const Capture& capture) { return capture.name == name.first; });
  };
  const auto& names = wanted.NamedCapturingGroups();
  if (std::all_of(names.begin(), names.end(), is_there)) return;
  Window window;
  window.move_to(text, match.hit);
  const std::string_view shown = shown_of(window, match.pattern);
  std::vector<re2::StringPiece> groups(static_cast<size_t>(wanted.NumberOfCapturingGroups()) + 1);
  if (!wanted.Match(re2::StringPiece(shown.data(), shown.size()), 0, shown.size(), RE2::UNANCHORED,
                    groups.data(), static_cast<int>(groups.size())))
    return;
  for (const auto& name : names)
    if (const re2::StringPiece value = groups[static_cast<size_t>(name.second)];
        !value.empty() && !is_there(name))
      captures.push_back({name.first, std::string(value.data(), value.size())});
}

Match Matcher::match_of(size_t id, size_t line, size_t hit) const {
  const Pattern& of = patterns_[id];
  return {of.mechanism, of.index, of.is_tell, static_cast<uint32_t>(id), line, hit};
}

// Which patterns that can be there match. Those that are wanted, or the others.
void Matcher::try_expressions(Search& search, Look look, bool wanted,
                              std::vector<size_t>& found) const {
  const auto is_asked_for = [&](size_t id) {
    const bool is_wanted =
        search.effort.is_wanted(id) && (look == Look::kAll || patterns_[id].goes_on);
    return is_wanted == wanted;
  };
  for (const size_t id : search.met.of(search.words, is_asked_for)) {
    const bool is_found = matches(id, search.window);
    const size_t shown = shown_of(search.window, id).size();
    if (wanted)
      search.effort.tried(id, shown, !is_found);
    else
      search.effort.pay(shown);
    if (is_found) found.push_back(id);
  }
}

// Of a line all matches are kept, or none: one of them may take the line from another.
void Matcher::look_at_window(Search& search, size_t hit, Look look) const {
  std::vector<size_t> found;
  try_expressions(search, look, true, found);
  if (found.empty()) return;
  try_expressions(search, look, false, found);
  const auto place = [this](size_t id) {
    const Pattern& pattern = patterns_[id];
    return std::tuple(pattern.mechanism, pattern.is_tell, pattern.index);
  };
  std::sort(found.begin(), found.end(), [&](size_t a, size_t b) { return place(a) < place(b); });
  for (const size_t id : found) {
    if (++search.counts[id] == kMaxMatches) search.effort.found_often(id);
    search.matches.push_back(match_of(id, search.window.begin, hit));
  }
}

void Matcher::look_at(Search& search, size_t hit) const {
  const size_t begin = line_begin(search.text, hit);
  const size_t end = line_end(search.text, hit);
  search.next = std::max({search.next, end, hit + 1});
  const Look look = look_for(search, begin, end);
  if (look == Look::kNone) return;
  search.window.move_to(search.text, hit);
  words_of(search.window.text, search.words);
  search.effort.pay(kLook + search.window.text.size());
  search.effort.begin_look();
  look_at_window(search, hit, look);
  for (const int word : search.at_hit) search.effort.end_look(word);
}

bool Matcher::is_wanted(Search& search, size_t hit) const {
  search.at_hit.clear();
  literals_->words_at(search.text, hit, search.at_hit);
  return std::any_of(search.at_hit.begin(), search.at_hit.end(),
                     [&](int word) { return search.effort.is_wanted_word(word); });
}

void Matcher::look_at_line(Search& search, size_t begin) const {
  const std::string_view text = search.text.substr(0, line_end(search.text, begin));
  const size_t hit = literals_->find(text, begin);
  if (hit == text.npos) return;
  search.at_hit.clear();
  look_at(search, hit);
}

// The line was there before. Where the lines after it are those of the last time, but for their
// numbers, they need not even be searched for literals.
void Matcher::follow(Search& search, size_t later, size_t earlier) const {
  if (search.waited++ < search.wait) return;
  search.waited = 0;
  const size_t begin = later;
  struct Line {
    size_t begin = 0;
    bool was_looked_at = false;
  };
  std::array<Line, kLinesBack> last{};  // lines of which not all that follows was compared
  for (size_t lines = 0;; lines++) {
    const size_t line = later;
    last[lines % kLinesBack] = {line, lines == 0};
    const Shapes::Same same = shapes_->compare_lines(search.text, later, earlier);
    if (same == Shapes::Same::kNo) {
      if (lines >= kLinesBack)
        search.next = std::max(search.next, last[(lines + 1) % kLinesBack].begin);
      // What follows those is another text than the last time, and a look at a later line has
      // passed them over.
      for (size_t i = lines - std::min(lines, kLinesBack - 1); i < lines; i++)
        if (const Line& passed = last[i % kLinesBack];
            passed.begin < search.next && !passed.was_looked_at)
          look_at_line(search, passed.begin);
      break;
    }
    if (same == Shapes::Same::kButForNumbers || lines == 0) continue;
    last[lines % kLinesBack].was_looked_at = true;
    look_at_line(search, line);
  }
  search.wait = later - begin < kWorthComparing ? std::min(2 * search.wait + 1, kLongestWait) : 0;
}

void Matcher::search_part(Search& search, size_t begin, size_t end) const {
  LiteralScan scan(*literals_, search.text, begin, end);
  while (!scan.at_end()) {
    if (search.effort.pass(scan.place() - begin))
      scan.search_for([&](int word) { return search.effort.is_wanted_word(word); });
    for (const size_t hit : scan.next_block()) {
      if (hit < search.next || !is_wanted(search, hit)) continue;
      look_at(search, hit);
      if (search.earlier != search.text.npos)
        follow(search, line_begin(search.text, hit), search.earlier);
    }
    scan.skip_to(search.next);
  }
}

void Matcher::search_end(std::string_view text, std::vector<Match>& matches) const {
  size_t at = text.size();
  for (size_t lines = 0; lines < kLastLines && at > 0; lines++) {
    while (at > 0 && ends_line(text[at - 1])) at--;
    const size_t begin = line_begin(text, at);
    const std::string_view line = without_prefix(text.substr(begin, at - begin));
    const re2::StringPiece piece(line.data(), line.size());
    for (size_t id = first_last_line_; id < patterns_.size(); id++)
      if (RE2::PartialMatch(piece, expression(id))) matches.push_back(match_of(id, begin, begin));
    if (begin == at) break;
    at = begin;
  }
}

std::vector<Match> Matcher::find(std::string_view text) const {
  const bool has_end = text.size() >= kHasEnd;
  const size_t large = text.size() < kSmall ? 1 : 2 * (text.size() / (2 * kPart) + 1);
  const size_t parts = large + (has_end ? 1 : 0);
  // A part ends with a line.
  const auto begin_of = [&](size_t part) {
    if (part == 0 || part == parts) return part == 0 ? 0 : text.size();
    return line_end(text, (text.size() - kEnd) / large * part);
  };
  std::vector<std::vector<Match>> found(parts + 1);
  together(parts + 1, [&](size_t part) {
    if (part == parts) return search_end(text, found[part]);
    Search search(*this, text, has_end && part == large);
    search_part(search, begin_of(part), begin_of(part + 1));
    found[part] = std::move(search.matches);
  });
  std::vector<Match> matches;
  for (std::vector<Match>& part : found)
    std::move(part.begin(), part.end(), std::back_inserter(matches));
  std::stable_sort(matches.begin(), matches.end(),
                   [](const Match& a, const Match& b) { return a.at < b.at; });
  return matches;
}

}  // namespace cohabit::explain
