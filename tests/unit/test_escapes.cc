#include "explain/escapes.h"

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <string_view>

using cohabit::explain::without_escapes;

namespace {

// Byte by byte, as ECMA-48 has it. A control character is no part of a sequence that it cuts short:
// line feeds stay, and another sequence begins as everywhere.
std::string plain(std::string_view text) {
  std::string result;
  const auto is = [&](size_t at, int first, int end) {
    return at < text.size() && text[at] >= first && text[at] < end;
  };
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '\x1b') {
      result += text[at++];
      continue;
    }
    if (++at == text.size()) break;
    if (text[at] == '[') {
      for (at++; is(at, 0x20, 0x40);) at++;
      at += is(at, 0x40, 0x7F);
    } else if (text[at] == ']') {
      while (at < text.size() && text[at] != '\a' && text[at] != '\x1b' && text[at] != '\n') at++;
      if (text.substr(at).starts_with("\x1b\\")) at++;
      if (is(at, '\a', '\a' + 1) || is(at, '\\', '\\' + 1)) at++;
    } else {
      at += is(at, 0x20, 0x7F);
    }
  }
  return result;
}

TEST_CASE("escape sequences are cut out, wherever a text is divided") {
  constexpr std::string_view kPieces[] = {
      "\x1b[0m",
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
      "\x1b[1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18;19;20;21;22;23;24;25m",
      "\x1b[3\x7f",
      "\x1b[3\xc3\xa4",
      "\x1b]8;;cut\x1b[1m",
      "a sentence of so many words that it fills more than one block of the search",
      "\x1b]0;cut\n",
      "a",
      "word and word",
      "\n",
      "\r",
      "[31m"};
  std::mt19937 chance(1);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{30}, size_t{300}, size_t{5} << 20})
    for (int i = 0; i < (size > 1000 ? 3 : 300); i++) {
      std::string text;
      while (text.size() < size) text += kPieces[chance() % std::size(kPieces)];
      CHECK((without_escapes(text).text() == plain(text)));
    }

  // A line of more than a part, between others.
  std::string text = "\x1b[1mfirst\x1b[0m\n";
  while (text.size() < size_t{1} << 20) text += std::string(kPieces[chance() % 4]) + "loss 0.5";
  text += "\nlast\x1b[K\n";
  while (text.size() < size_t{2} << 20) text += "line\x1b[38;5;1m\n";
  CHECK((without_escapes(text).text() == plain(text)));
}

}  // namespace
