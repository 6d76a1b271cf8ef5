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
  Result<void> add(const std::vector<Mechanism>& mechanisms);
  Result<void> compile(const std::vector<Mechanism>& mechanisms);
  void look_at(Search& search, size_t hit) const;
  void keep(Search& search, int id, size_t begin, std::string_view window, size_t first_line) const;

  std::vector<Pattern> patterns_;
  std::unique_ptr<re2::FilteredRE2> expressions_;
  std::unique_ptr<Literals> literals_;
};

}  // namespace cohabit::explain
