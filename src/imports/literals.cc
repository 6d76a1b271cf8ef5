#include "imports/literals.h"

#include <algorithm>

#include "imports/source_text.h"

namespace cohabit::python {
namespace {

constexpr uint32_t kReplacement = 0xfffd, kLastCodePoint = 0x10ffff;

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : 99;
}

// The character that stands for an escape of one letter; '\0': there is none.
char simple_escape(char letter) {
  switch (letter) {
    case '\\':
    case '\'':
    case '"':
      return letter;
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'v':
      return '\v';
    default:
      return '\0';
  }
}

class Unescaper {
 public:
  Unescaper(std::string& value, std::string_view text, bool bytes)
      : value_(value), text_(text), bytes_(bytes) {}

  std::string_view run() {
    while (at_ < text_.size() && error_.empty()) {
      const size_t escape = std::min(text_.find('\\', at_), text_.size());
      value_ += text_.substr(at_, escape - at_);
      at_ = escape;
      if (at_ < text_.size()) read_escape();
    }
    return error_;
  }

 private:
  void add(uint32_t code) {
    if (bytes_)
      value_ += static_cast<char>(code);
    else
      append_code_point(value_, code);
  }

  void read_escape() {
    if (at_ + 1 >= text_.size()) {  // a field of an f-string follows
      value_ += '\\';
      at_++;
      return;
    }
    const char letter = text_[at_ + 1];
    at_ += 2;
    if (letter == '\n') return;
    if (const char simple = simple_escape(letter)) {
      value_ += simple;
    } else if (letter >= '0' && letter <= '7') {
      at_--;
      add(read_digits(8, 3, false));
    } else if (letter == 'x') {
      add(read_digits(16, 2, true));
    } else if (!bytes_ && (letter == 'u' || letter == 'U')) {
      const uint32_t code = read_digits(16, letter == 'u' ? 4 : 8, true);
      if (code > kLastCodePoint) error_ = "illegal Unicode character";
      add(std::min(code, kLastCodePoint));
    } else if (!bytes_ && letter == 'N') {
      read_named();
    } else {
      value_ += '\\';
      value_ += letter;
    }
  }

  uint32_t read_digits(int base, size_t count, bool all) {
    uint32_t code = 0;
    const size_t end = std::min(at_ + count, text_.size());
    const size_t begin = at_;
    for (; at_ < end && digit_value(text_[at_]) < base; at_++)
      code = code * static_cast<uint32_t>(base) + static_cast<uint32_t>(digit_value(text_[at_]));
    if (all && at_ - begin != count) error_ = "truncated escape";
    return code;
  }

  // The names of characters are not at hand: nobody names a library with one.
  void read_named() {
    const size_t close = text_.find('}', at_);
    if (at_ >= text_.size() || text_[at_] != '{' || close == text_.npos || close == at_ + 1) {
      error_ = "malformed \\N character escape";
      return;
    }
    add(kReplacement);
    at_ = close + 1;
  }

  std::string& value_;
  std::string_view text_;
  std::string_view error_;
  size_t at_ = 0;
  bool bytes_;
};

}  // namespace

std::string_view strip_quotes(std::string_view token, const StringPrefix& prefix) {
  token.remove_prefix(prefix.length);
  const bool triple = token.size() >= 6 && token[1] == token[0] && token[2] == token[0];
  const size_t quotes = triple ? 3 : 1;
  return token.substr(quotes, token.size() - 2 * quotes);
}

std::string_view append_value(std::string& value, std::string_view text,
                              const StringPrefix& prefix) {
  if (prefix.is_bytes &&
      std::any_of(text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; }))
    return "bytes can only contain ASCII literal characters";
  if (prefix.is_raw) {
    value += text;
    return "";
  }
  return Unescaper(value, text, prefix.is_bytes).run();
}

std::optional<int64_t> integer_value(std::string_view literal) {
  int64_t value = 0;
  int base = 10;
  if (literal.size() > 2 && literal[0] == '0') {
    const char letter = static_cast<char>(literal[1] | 0x20);
    base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
    if (base != 10) literal.remove_prefix(2);
  }
  for (const char c : literal) {
    if (c == '_') continue;
    if (__builtin_mul_overflow(value, base, &value) ||
        __builtin_add_overflow(value, digit_value(c), &value))
      return std::nullopt;
  }
  return value;
}

}  // namespace cohabit::python
