// All patterns of all known mechanisms against one text, in one pass.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "explain/patterns.h"

namespace re2 {
class RE2;
}

namespace cohabit::explain {

class Literals;
struct Needs;
class Shapes;
struct Triggers;

// A pattern that was found: a signal of a mechanism, or a tell.
struct Match {
  uint32_t mechanism = 0;
  uint32_t index = 0;  // of the signal or tell
  bool is_tell = false;
  uint32_t pattern = 0;   // the matcher's
  size_t at = 0;          // where its line begins in the text
  size_t hit = 0;         // in that line, what it was looked at for
  bool in_whole = false;  // `hit` is a place in the lines that were made whole
};

class Matcher {
 public:
  Matcher();
  ~Matcher();
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  // In the order of the text; of one pattern the first kMaxMatches of each part of the text.
  static constexpr size_t kMaxMatches = 50;
  std::vector<Match> find(std::string_view text) const;

  // Of a match in this text. Few are shown, so that they are read when they are asked for.
  static std::string line_of(std::string_view text, const Match& match);  // without prefix
  // Adds what it captures under names that are not there.
  void add_captures(std::string_view text, const Match& match,
                    std::vector<Capture>& captures) const;

 private:
  struct Search;
  struct Window;
  struct Expression;
  void search_end(std::string_view text, std::vector<Match>& matches) const;
  void search_part(Search& search, size_t begin, size_t end) const;
  // A line that was there before, but for numbers that say nothing, may be followed by others.
  enum class Look : uint8_t { kAll, kWhatFollows, kNone };
  Look look_for(Search& search, size_t begin, size_t end) const;
  void look_at(Search& search, size_t hit) const;
  void follow(Search& search, size_t later, size_t earlier) const;
  void words_of(std::string_view text, std::vector<int>& words) const;
  bool is_wanted(Search& search, size_t hit) const;
  void look_at_line(Search& search, size_t begin) const;
  void look_at_window(Search& search, size_t hit, Look look) const;
  void try_expressions(Search& search, Look look, bool wanted, std::vector<size_t>& found) const;
  const re2::RE2& expression(size_t id) const;
  std::string_view shown_of(const Window& window, size_t id) const;
  bool matches(size_t id, const Window& window) const;
  Match match_of(size_t id, size_t line, size_t hit) const;

  std::vector<Pattern> patterns_;  // in the end those for the last lines
  size_t first_last_line_ = 0;
  std::unique_ptr<Expression[]> expressions_;  // by pattern
  const Needs& needs_;
  std::unique_ptr<Triggers> triggers_;
  std::unique_ptr<Literals> literals_;
  std::unique_ptr<Shapes> shapes_;
};

}  // namespace cohabit::explain
