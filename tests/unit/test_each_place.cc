// What is found a block at a time is what a walk over all bytes finds.
#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "base/each_place.h"

using namespace cohabit;

TEST_CASE("places that a test of neighbouring bytes tells") {
  const auto is_end = [](const char* at) { return (at[-1] == 'a') & (at[0] == 'b'); };
  std::mt19937 random(3);
  for (int round = 0; round < 3000; round++) {
    std::string text(1 + random() % 300, 'x');
    // Seldom, often, everywhere.
    const unsigned kinds = round % 3 == 0 ? 40 : round % 3 == 1 ? 3 : 2;
    for (char& c : text) c = static_cast<char>('a' + random() % kinds);
    const size_t begin = 1 + random() % text.size();
    const size_t end = begin + random() % (text.size() - begin + 1);
    const size_t most = random() % 4 == 0 ? random() % 5 : text.size();
    std::vector<size_t> expected, found;
    for (size_t i = begin; i < end && expected.size() <= most; i++)
      if (text[i - 1] == 'a' && text[i] == 'b') expected.push_back(i);
    each_place(text, begin, end, is_end, [&](size_t at) {
      found.push_back(at);
      return found.size() <= most;
    });
    CAPTURE(text);
    CHECK(found == expected);
  }
}
