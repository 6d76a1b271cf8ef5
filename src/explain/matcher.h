// All patterns of all mechanisms against one text, in one pass.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "explain/knowledge.h"

namespace re2 {
class FilteredRE2;
}

namespace cohabit::explain {

class Literals;
class Shapes;

// A pattern that was found: a signal of a mechanism, or a tell.
struct Match {
  uint32_t mechanism = 0;
  uint32_t index = 0;  // of the signal or tell
  bool is_tell = false;
  size_t at = 0;     // where its line begins in the text
  std::string line;  // without prefix
  std::vector<Capture> captures;
};

class Matcher {
 public:
  // An error names the pattern that is not a regular expression, or that no literal can filter.
  static Result<Matcher> make(const std::vector<Mechanism>& mechanisms);
  Matcher(Matcher&&) noexcept;
  Matcher& operator=(Matcher&&) noexcept;
  ~Matcher();

  // In the order of the text; of one pattern the first kMaxMatches.
  static constexpr size_t kMaxMatches = 50;
  std::vector<Match> find(std::string_view text) const;

 private:
  Matcher();
  struct Pattern {
    uint32_t mechanism = 0, index = 0;
    bool is_tell = false;
  };
  struct Search;
  struct Window;
  Result<void> add(const std::vector<Mechanism>& mechanisms);
  Result<void> compile(const std::vector<Mechanism>& mechanisms);
  bool is_worth_a_look(Search& search, std::string_view line) const;
  void look_at(Search& search, size_t hit) const;
  void words_of(std::string_view text, std::vector<int>& words) const;
  const std::vector<int>& expressions_for(Search& search, const std::vector<int>& words) const;
  void try_expressions(Search& search, const Window& window, const std::vector<int>& ids) const;
  bool match(int id, const Window& window, Match& match) const;

  std::vector<Pattern> patterns_;
  std::unique_ptr<re2::FilteredRE2> expressions_;
  std::unique_ptr<Literals> literals_;
  std::unique_ptr<Shapes> shapes_;
};

}  // namespace cohabit::explain
