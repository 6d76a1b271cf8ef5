#include "imports/scanner.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace cohabit::python {
namespace {

enum class Class : uint8_t { kPlain, kLineBreak, kQuote, kHash, kOpening, kClosing, kBackslash };

constexpr std::array<Class, 256> make_classes() {
  std::array<Class, 256> classes{};
  classes['\n'] = Class::kLineBreak;
  classes['"'] = classes['\''] = Class::kQuote;
  classes['#'] = Class::kHash;
  classes['('] = classes['['] = classes['{'] = Class::kOpening;
  classes[')'] = classes[']'] = classes['}'] = Class::kClosing;
  classes['\\'] = Class::kBackslash;
  return classes;
}

constexpr std::array<Class, 256> kClasses = make_classes();

Class class_of(char c) {
  return kClasses[static_cast<uint8_t>(c)];
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80);
}

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\f';
}

// Whether the quote at the cursor opens a string with fields: its prefix is behind us.
bool opens_fields(const Cursor& cursor) {
  uint32_t begin = cursor.at;
  while (begin > 0 && cursor.at - begin < 3 && is_letter(cursor.text[begin - 1])) begin--;
  return begin < cursor.at &&
         read_prefix(cursor.text.substr(begin, cursor.at - begin)).is_formatted;
}

bool is_triple(const Cursor& cursor) {
  return cursor.peek(1) == cursor.peek() && cursor.peek(2) == cursor.peek();
}

bool closes(const Cursor& cursor, char quote, bool triple) {
  return cursor.peek() == quote && (!triple || is_triple(cursor));
}

void skip_fields_string(Cursor& cursor, int nested);

void skip_any_string(Cursor& cursor, int nested) {
  if (opens_fields(cursor))
    skip_fields_string(cursor, nested);
  else
    skip_string(cursor);
}

// The text behind the colon of a field, which may hold fields again.
void skip_field(Cursor& cursor, int nested);
void skip_format(Cursor& cursor, int nested) {
  while (!cursor.at_end() && cursor.peek() != '}') {
    if (cursor.peek() == '{')
      skip_field(cursor, nested);
    else
      cursor.skip();
  }
}

// From a { to behind its }.
void skip_field(Cursor& cursor, int nested) {
  if (nested >= kMaxNestedFStrings) {
    cursor.at = static_cast<uint32_t>(cursor.text.size());
    return;
  }
  cursor.at++;
  for (uint32_t depth = 0; !cursor.at_end();) {
    const char c = cursor.peek();
    if (c == ':' && depth == 0) {
      skip_format(cursor, nested + 1);
      continue;
    }
    switch (class_of(c)) {
      case Class::kQuote:
        skip_any_string(cursor, nested + 1);
        continue;
      case Class::kHash:
        skip_comment(cursor);
        continue;
      case Class::kOpening:
        depth++;
        break;
      case Class::kClosing:
        if (depth == 0) {
          cursor.at++;
          return;
        }
        depth--;
        break;
      default:
        break;
    }
    cursor.skip();
  }
}

void skip_fields_string(Cursor& cursor, int nested) {
  const char quote = cursor.peek();
  const bool triple = is_triple(cursor);
  const uint32_t letters = cursor.at < 2 ? cursor.at : 2;
  const bool raw = cursor.text.substr(cursor.at - letters, letters).find_first_of("rR") !=
                   std::string_view::npos;
  cursor.at += triple ? 3 : 1;
  while (!cursor.at_end()) {
    const char c = cursor.peek();
    if (closes(cursor, quote, triple)) {
      cursor.at += triple ? 3 : 1;
      return;
    }
    if (c == '\n' && !triple) return;
    if (c == '\\' && !raw && cursor.peek(1) == 'N' && cursor.peek(2) == '{') {
      cursor.at += 3;
    } else if (c == '\\' && cursor.peek(1) != '{' && cursor.peek(1) != '}') {
      cursor.at++;
      cursor.skip();
    } else if (c == '{' && cursor.peek(1) == '{') {
      cursor.at += 2;
    } else if (c == '{') {
      skip_field(cursor, nested);
    } else {
      cursor.skip();
    }
  }
}

}  // namespace

StringPrefix read_prefix(std::string_view letters) {
  StringPrefix prefix;
  prefix.length = static_cast<uint8_t>(letters.size());
  if (letters.size() > 2) return prefix;
  char kind = 0;
  for (const char letter : letters) {
    const char lower = static_cast<char>(letter | 0x20);
    if (lower == 'r' && !prefix.is_raw)
      prefix.is_raw = true;
    else if (kind == 0 && std::strchr("bftu", lower) != nullptr && letter != '\0')
      kind = lower;
    else
      return prefix;
  }
  prefix.is_bytes = kind == 'b';
  prefix.is_formatted = kind == 'f' || kind == 't';
  prefix.is_valid = kind != 'u' || !prefix.is_raw;
  return prefix;
}

Indentation skip_indentation(Cursor& cursor) {
  Indentation here, split;
  for (;; cursor.at++) {
    const char c = cursor.peek();
    if (c == ' ') {
      here.column++;
      here.alternative++;
    } else if (c == '\t') {
      here.column = (here.column / 8 + 1) * 8;
      here.alternative++;
    } else if (c == '\f') {
      here = {};
    } else if (c == '\\' && cursor.peek(1) == '\n') {
      // The indentation is what stands before the first continuation, if anything does.
      if (split.column == 0) split = here;
      cursor.at++;
      cursor.line++;
    } else {
      return split.column != 0 ? split : here;
    }
  }
}

void skip_comment(Cursor& cursor) {
  const size_t end = std::min(cursor.text.find('\n', cursor.at), cursor.text.size());
  cursor.at = static_cast<uint32_t>(end);
}

namespace {

// Where the next quote, backslash or line break stands; the end if there is none. Eight letters at
// a time: a third of the text of TensorFlow and PyTorch is in triple quotes.
size_t find_special(std::string_view text, size_t at, char quote) {
  constexpr uint64_t kOnes = 0x0101010101010101, kHigh = 0x8080808080808080;
  // The lowest bit that is set belongs to the first such letter.
  const auto places_of = [](uint64_t word, char letter) {
    const uint64_t differs = word ^ kOnes * static_cast<uint8_t>(letter);
    return (differs - kOnes) & ~differs & kHigh;
  };
  for (uint64_t word = 0; at + sizeof word <= text.size(); at += sizeof word) {
    std::memcpy(&word, text.data() + at, sizeof word);
    const uint64_t found = places_of(word, quote) | places_of(word, '\\') | places_of(word, '\n');
    if (found != 0) return at + static_cast<size_t>(__builtin_ctzll(found)) / 8;
  }
  while (at < text.size() && text[at] != quote && text[at] != '\\' && text[at] != '\n') at++;
  return at;
}

}  // namespace

bool skip_string(Cursor& cursor) {
  const char quote = cursor.peek();
  const bool triple = is_triple(cursor);
  const std::string_view text = cursor.text;
  size_t at = cursor.at + (triple ? 3 : 1);
  for (;; at++) {
    at = find_special(text, at, quote);
    if (at >= text.size()) break;
    const char c = text[at];
    if (c == '\\') at++;
    if (c == '\\' && at < text.size() && text[at] != '\n') continue;
    if (c == quote && (!triple || text.substr(at, 3) == std::string_view(&text[cursor.at], 3))) {
      cursor.at = static_cast<uint32_t>(at + (triple ? 3 : 1));
      return true;
    }
    if (c == '\n' && !triple) break;
    if (c != quote) cursor.line++;
  }
  cursor.at = static_cast<uint32_t>(std::min(at, text.size()));
  return false;
}

uint32_t skip_logical_line(Cursor& cursor) {
  const std::string_view text = cursor.text;
  uint32_t end = cursor.at;
  const auto note_end = [&] {
    uint32_t at = cursor.at;
    while (at > end && is_blank(text[at - 1])) at--;
    end = at;
  };
  for (uint32_t depth = 0; !cursor.at_end();) {
    size_t at = cursor.at;
    while (at < text.size() && class_of(text[at]) == Class::kPlain) at++;
    cursor.at = static_cast<uint32_t>(at);
    note_end();
    if (cursor.at_end()) break;
    switch (class_of(text[at])) {
      case Class::kLineBreak:
        cursor.skip();
        if (depth == 0) return end;
        continue;
      case Class::kHash:
        skip_comment(cursor);
        if (!cursor.at_end()) cursor.skip();
        if (depth == 0) return end;
        continue;
      case Class::kBackslash:
        cursor.at++;
        if (!cursor.at_end()) cursor.skip();
        continue;
      case Class::kQuote:
        skip_any_string(cursor, 0);
        break;
      case Class::kOpening:
        depth++;
        cursor.at++;
        break;
      default:  // closing
        if (depth > 0) depth--;
        cursor.at++;
    }
    end = cursor.at;
  }
  return end;
}

bool skip_block(Cursor& cursor, uint32_t column) {
  bool found = false;
  while (!cursor.at_end()) {
    const Cursor start = cursor;
    const Indentation indentation = skip_indentation(cursor);
    const char c = cursor.peek();
    if (c == '#') skip_comment(cursor);
    if (c == '#' || c == '\n') {
      if (!cursor.at_end()) cursor.skip();
      continue;
    }
    if (indentation.column <= column && !cursor.at_end()) {
      cursor = start;
      break;
    }
    found = found || !cursor.at_end();
    skip_logical_line(cursor);
  }
  return found;
}

}  // namespace cohabit::python
