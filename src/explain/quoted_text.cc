#include "explain/quoted_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace cohabit::explain {
namespace {

using Replacement = std::pair<std::string_view, std::string_view>;

constexpr std::array kEntities = {
    Replacement{"&quot;", "\""}, Replacement{"&#34;", "\""}, Replacement{"&#39;", "'"},
    Replacement{"&#x27;", "'"},  Replacement{"&apos;", "'"}, Replacement{"&lt;", "<"},
    Replacement{"&gt;", ">"},    Replacement{"&nbsp;", " "}, Replacement{"&amp;", "&"},
};
// Of an editor, and spaces of a page, in UTF-8.
constexpr std::array kTypography = {
    Replacement{"\xE2\x80\x98", "'"},  Replacement{"\xE2\x80\x99", "'"},
    Replacement{"\xE2\x80\x9C", "\""}, Replacement{"\xE2\x80\x9D", "\""},
    Replacement{"\xE2\x80\x8B", ""},   Replacement{"\xEF\xBB\xBF", ""},
    Replacement{"\xC2\xA0", " "},
};

// What stands for itself in a string, and what is written for it.
constexpr std::string_view kEscaped = "nrt\"'\\/";
constexpr std::string_view kMeant = "\r\r \"'\\/";

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

// Whatever follows a backslash in a string has a meaning; in a path of Windows not for long.
bool has_escapes_only(std::string_view line) {
  for (size_t at = line.find('\\'); at != line.npos; at = line.find('\\', at + 2))
    if (at + 1 == line.size() || !contains("nrtbfvux0\"'\\/", line.substr(at + 1, 1))) return false;
  return true;
}

// A directory of Windows may be called \new: a line is a string where it looks like one.
bool is_string(std::string_view line) {
  if (!has_escapes_only(line)) return false;
  for (const std::string_view one : {"\\\"", "\\u001b[", "\\x1b[", "\\xd", "\\xe", "\\u"})
    if (contains(line, one)) return true;
  if (!contains(line, "\\n")) return false;
  const std::string_view begin = line.substr(line.find_first_not_of(" \t"));
  for (const std::string_view one : {"{", "\"", "'", "[\"", "['", "b'", "b\"", "(\"", "('"})
    if (begin.starts_with(one)) return true;
  const std::array ends = {"\\n'", "\\n\"", "\\n\\n", "\\r\\n", "\\n  ", "\\nTraceback"};
  return std::any_of(ends.begin(), ends.end(), [&](auto end) { return contains(line, end); });
}

// Of \u001b or \x1b at this place: the number and where it ends; 0 is none.
std::pair<uint32_t, size_t> number_at(std::string_view line, size_t at) {
  const size_t digits = line[at + 1] == 'u' ? 4 : line[at + 1] == 'x' ? 2 : 0;
  uint32_t number = 0;
  if (digits == 0 || at + 2 + digits > line.size()) return {0, at};
  const char* begin = line.data() + at + 2;
  const auto [end, error] = std::from_chars(begin, begin + digits, number, 16);
  return end == begin + digits ? std::pair{number, at + 2 + digits} : std::pair{0U, at};
}

// A colour is left out, \x is a byte; what is no escape stays.
void append_meant(std::string& result, std::string_view line) {
  for (size_t at = 0; at < line.size();) {
    const size_t meant =
        line[at] == '\\' && at + 1 < line.size() ? kEscaped.find(line[at + 1]) : kEscaped.npos;
    if (meant != kEscaped.npos) {
      result += kMeant[meant];
      at += 2;
    } else if (const auto [number, end] = line[at] == '\\' && at + 1 < line.size()
                                              ? number_at(line, at)
                                              : std::pair{0U, at};
               number == 0) {
      result += line[at++];
    } else if (number == 0x1B) {
      const size_t last = line.find_first_of("mKJHhl", end);
      at = line.substr(end, 1) == "[" && last != line.npos ? last + 1 : end;
    } else if (line[at + 1] == 'x') {
      result += static_cast<char>(number);
      at = end;
    } else {
      append_utf8(result, number);
      at = end;
    }
  }
}

std::string without_strings(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of("\n\r", at), text.size() - 1) + 1;
    const std::string_view line = text.substr(at, end - at);
    if (is_string(line))
      append_meant(result, line);
    else
      result.append(line);
    at = end;
  }
  return result;
}

template <size_t kCount>
std::string replaced(std::string_view text, const std::array<Replacement, kCount>& all,
                     std::string_view first) {
  std::string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t found = std::min(text.find_first_of(first, at), text.size());
    result.append(text.substr(at, found - at));
    if (found == text.size()) break;
    const auto one = std::find_if(all.begin(), all.end(), [&](const Replacement& replacement) {
      return text.substr(found).starts_with(replacement.first);
    });
    result.append(one == all.end() ? text.substr(found, 1) : one->second);
    at = found + (one == all.end() ? 1 : one->first.size());
  }
  return result;
}

}  // namespace

void append_utf8(std::string& text, uint32_t unit) {
  if (unit < 0x80) {
    text += static_cast<char>(unit);
  } else if (unit < 0x800) {
    text += static_cast<char>(0xC0 | (unit >> 6));
    text += static_cast<char>(0x80 | (unit & 0x3F));
  } else {
    text += static_cast<char>(0xE0 | (unit >> 12));
    text += static_cast<char>(0x80 | ((unit >> 6) & 0x3F));
    text += static_cast<char>(0x80 | (unit & 0x3F));
  }
}

std::string as_it_was_printed(std::string_view text) {
  std::string result(text);
  if (contains(result, "\\")) result = without_strings(result);
  // A string in a string: a log record that holds what a program said.
  if (contains(result, "\\\"")) result = without_strings(result);
  if (contains(result, "&")) result = replaced(result, kEntities, "&");
  return replaced(result, kTypography, "\xE2\xEF\xC2");
}

}  // namespace cohabit::explain
