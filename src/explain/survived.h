// Failures that a program has told of and gone on: an optional part at level DEBUG, a caught error
// at level WARNING, what LD_DEBUG writes of searches, names of tests that pass.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace cohabit::explain {

class Survived {
 public:
  explicit Survived(std::string_view text) : text_(text) {}
  // Of the line that begins here.
  bool contains(size_t at);

 private:
  bool goes_on_well_after(size_t at);

  std::string_view text_;
  // Where the last line of level INFO begins, and the last sign of a failure that was not survived.
  std::optional<std::pair<size_t, size_t>> ends_;
};

}  // namespace cohabit::explain
