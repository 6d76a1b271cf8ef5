#include "imports/source_text.h"
#include "base/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace cohabit::python {
namespace {

bool is_name_of_coding(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

// The name in a comment such as "# -*- coding: latin-1 -*-" (PEP 263), in lower case.
std::string coding_of_line(std::string_view line) {
  const size_t start = line.find_first_not_of(" \t\f");
  if (start == line.npos || line[start] != '#') return "";
  for (size_t at = line.find("coding"); at != line.npos; at = line.find("coding", at + 1)) {
    size_t begin = at + 6;
    if (begin >= line.size() || (line[begin] != ':' && line[begin] != '=')) continue;
    begin = std::min(line.find_first_not_of(" \t", begin + 1), line.size());
    std::string name;
    for (; begin < line.size() && is_name_of_coding(line[begin]); begin++)
      name += line[begin] == '_'                         ? '-'
              : line[begin] >= 'A' && line[begin] <= 'Z' ? static_cast<char>(line[begin] + 32)
                                                         : line[begin];
    if (!name.empty()) return name;
  }
  return "";
}

// It stands in the first line, or in the second when the first is blank or a comment.
std::string find_coding(std::string_view text) {
  for (int i = 0; i < 2; i++) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    std::string name = coding_of_line(line);
    if (!name.empty()) return name;
    const size_t start = line.find_first_not_of(" \t\f");
    if (start != line.npos && line[start] != '#') return "";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return "";
}

// Each byte is a character. Other encodings are read like this too, since all that can hold Python
// agree about ASCII, and nothing else is of interest.
void decode_latin1(std::string& text) {
  std::string result;
  result.reserve(text.size() + text.size() / 8);
  for (const char c : text) append_code_point(result, static_cast<uint8_t>(c));
  text = std::move(result);
}

// "\r\n" and "\r" become "\n".
void unify_line_breaks(std::string& text) {
  size_t to = text.find('\r');
  if (to == text.npos) return;
  for (size_t from = to; from < text.size(); from++) {
    if (text[from] != '\r')
      text[to++] = text[from];
    else if (from + 1 >= text.size() || text[from + 1] != '\n')
      text[to++] = '\n';
  }
  text.resize(to);
}

}  // namespace

void append_code_point(std::string& text, uint32_t code) {
  const auto add = [&](uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0 | code >> 6);
    add(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    add(0xe0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3f));
    add(0x80 | (code & 0x3f));
  } else {
    add(0xf0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3f));
    add(0x80 | (code >> 6 & 0x3f));
    add(0x80 | (code & 0x3f));
  }
}

std::string_view make_source_text(std::string& bytes, StrayByte& stray) {
  if (bytes.size() >= (uint64_t{1} << 31)) return "file too large";
  if (bytes.find('\0') != std::string::npos) return "source code cannot contain null bytes";
  const bool has_mark = bytes.starts_with("\xef\xbb\xbf");
  if (has_mark) bytes.erase(0, 3);
  unify_line_breaks(bytes);
  const size_t at = find_stray_byte(bytes);
  if (at == bytes.size()) return "";
  const std::string coding = find_coding(bytes);
  if (coding == "utf8") return "'utf-8' codec can't decode a byte of it";
  if (!coding.empty() && !coding.starts_with("utf-8")) {
    decode_latin1(bytes);
    return "";
  }
  const auto here = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  stray.line = static_cast<uint32_t>(std::count(bytes.begin(), here, '\n') + 1);
  stray.byte = static_cast<uint8_t>(*here);
  stray.is_declared = has_mark || !coding.empty();
  return "";
}

}  // namespace cohabit::python
