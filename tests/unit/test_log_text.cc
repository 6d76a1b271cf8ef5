#include "explain/log_text.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <string_view>

using cohabit::explain::LogText;

namespace {

// Byte by byte, as ECMA-48 has it.
std::string plain(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size(); at++) {
    if (text[at] != '\x1b') {
      result += text[at];
      continue;
    }
    if (++at == text.size()) break;
    if (text[at] == '[') {
      at++;
      while (at < text.size() && text[at] >= 0x20 && text[at] < 0x40) at++;
    } else if (text[at] == ']') {
      while (at < text.size() && text[at] != '\a' && text[at] != '\x1b' && text[at] != '\n') at++;
      if (at < text.size() && text[at] == '\x1b') at++;
      if (at < text.size() && text[at] == '\n') result += '\n';
    }
  }
  return result;
}

TEST_CASE("escape sequences are cut out, wherever a text is divided") {
  constexpr std::string_view kPieces[] = {"\x1b[0m",
                                          "\x1b[38;5;123m",
                                          "\x1b[1;2;3;4;5;6;7;8;9m",
                                          "\x1b[K",
                                          "\x1b[\n",
                                          "\x1b\n",
                                          "\x1b[3\n",
                                          "\x1b]0;title\a",
                                          "\x1b]8;;link\x1b\\",
                                          "\x1b[",
                                          "\x1b",
                                          "\x1b]0;cut\n",
                                          "a",
                                          "word and word",
                                          "\n",
                                          "\r",
                                          "[31m"};
  std::mt19937 chance(1);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{30}, size_t{5} << 20})
    for (int i = 0; i < (size > 1000 ? 3 : 300); i++) {
      std::string text;
      while (text.size() < size) text += kPieces[chance() % std::size(kPieces)];
      CHECK((LogText(text).text() == plain(text)));
    }
}

}  // namespace
