#include <doctest/doctest.h>

#include "explain/effort.h"

using namespace cohabit::explain;

namespace {

constexpr size_t kInVain = 500, kAgainInVain = 50;
constexpr size_t kBlock = size_t{64} << 10;

// Pattern 0 needs "importerror" and "undefined symbol"; pattern 1 "importerror", and goes on.
struct Known {
  Needs needs{{"importerror", "undefined symbol"}, {0, 2, 3}, {{0, 0}, {1, 0}, {0, 1}}, {2, 1}};
  std::vector<Pattern> patterns{{0, 0, false, false, ""}, {0, 1, false, true, ""}};
  Triggers triggers{needs, patterns};
};

void try_in_vain(Effort& effort, size_t pattern, size_t times, size_t bytes = 0) {
  for (size_t i = 0; i < times; i++) {
    effort.begin_look();
    effort.tried(pattern, bytes, true);
  }
}

}  // namespace

TEST_CASE("a pattern is searched for by the longest of its literals, and then by another") {
  const Known known;
  Effort effort(known.triggers, true);
  effort.found_often(1);
  CHECK(effort.is_wanted_word(1));
  CHECK_FALSE(effort.is_wanted_word(0));
  try_in_vain(effort, 0, kInVain);
  CHECK_FALSE(effort.is_wanted(0));
  CHECK(effort.pass(kBlock));
  CHECK(effort.is_wanted(0));
  CHECK(effort.is_wanted_word(0));
  CHECK_FALSE(effort.is_wanted_word(1));
}

TEST_CASE("what is tried in vain rests, and longer each time") {
  const Known known;
  Effort effort(known.triggers, true);
  try_in_vain(effort, 1, kInVain - 1);
  CHECK(effort.is_wanted(1));
  try_in_vain(effort, 1, 1);
  CHECK_FALSE(effort.is_wanted(1));
  effort.pass(kBlock);
  CHECK(effort.is_wanted(1));
  try_in_vain(effort, 1, kAgainInVain);
  effort.pass(2 * kBlock);
  CHECK_FALSE(effort.is_wanted(1));
  effort.pass(3 * kBlock);
  CHECK(effort.is_wanted(1));
}

TEST_CASE("at the end of a text nothing rests") {
  const Known known;
  Effort effort(known.triggers, false);
  try_in_vain(effort, 1, 10 * kInVain);
  CHECK(effort.is_wanted(1));
}

TEST_CASE("a look at a line counts for patterns that lack another literal") {
  const Known known;
  Effort effort(known.triggers, true);
  for (size_t i = 0; i < kInVain; i++) {
    effort.begin_look();
    effort.end_look(1);
  }
  CHECK_FALSE(effort.is_wanted(0));
  CHECK(effort.is_wanted(1));
}

TEST_CASE("tries cost no more than a share of the text, a few aside") {
  const Known known;
  Effort effort(known.triggers, true);
  effort.pay(size_t{1} << 30);
  try_in_vain(effort, 0, 2, 1000);
  CHECK(effort.is_wanted(0));
  try_in_vain(effort, 0, 30, 1000);
  CHECK_FALSE(effort.is_wanted(0));
  effort.pass(kBlock);
  CHECK_FALSE(effort.is_wanted(0));
  effort.pass(size_t{4} << 30);
  CHECK(effort.is_wanted(0));
}
