#include "explain/log_text.h"

#include <iconv.h>
#include <re2/re2.h>

#include <algorithm>
#include <optional>

#include "base/eight_bytes.h"
#include "base/read_file.h"
#include "base/tree.h"
#include "base/utf8.h"
#include "explain/quoted_text.h"

namespace cohabit::explain {
namespace {

constexpr size_t kSample = 4096;
constexpr size_t kMostPasted = size_t{4}
                               << 20;  // larger texts are not looked through for GBK and strings
constexpr size_t kMaxLine = 4096;      // looked at in one line, on either side of a match

// Windows PowerShell writes UTF-16 with a byte order mark where one redirects; parts of such files
// have none. There, as good as every second byte of what programs print is zero.
struct Utf16 {
  bool big = false;
  size_t begin = 0;
};

std::optional<Utf16> utf16_of(std::string_view text) {
  if (text.starts_with("\xFF\xFE")) return Utf16{false, 2};
  if (text.starts_with("\xFE\xFF")) return Utf16{true, 2};
  const std::string_view sample = text.substr(0, kSample);
  size_t first = 0, second = 0;
  for (size_t at = 0; at + 1 < sample.size(); at += 2) {
    first += sample[at] == 0;
    second += sample[at + 1] == 0;
  }
  const size_t most = sample.size() / 2, many = (most + 1) / 2, few = most / 16;
  if (most > 3 && second >= many && first <= few) return Utf16{false, 0};
  if (most > 3 && first >= many && second <= few) return Utf16{true, 0};
  return {};
}

// Surrogates are written one by one: no message has them.
std::string from_utf16(std::string_view text, Utf16 of) {
  std::string result;
  result.reserve(text.size() / 2);
  for (size_t at = of.begin; at + 1 < text.size(); at += 2) {
    const auto first = static_cast<unsigned char>(text[at]);
    const auto second = static_cast<unsigned char>(text[at + 1]);
    append_utf8(result, of.big ? first << 8U | second : second << 8U | first);
  }
  return result;
}

// From GB18030, or nothing: it is something else, or this system has no table of it.
std::string from_chinese(std::string_view line) {
  const iconv_t table = iconv_open("UTF-8", "GB18030");
  if (table == reinterpret_cast<iconv_t>(-1)) return "";
  std::string result(line.size() * 3, 0);
  char* in = const_cast<char*>(line.data());
  char* out = result.data();
  size_t left = line.size(), room = result.size();
  const bool whole = iconv(table, &in, &left, &out, &room) != static_cast<size_t>(-1);
  iconv_close(table);
  result.resize(whole ? result.size() - room : 0);
  return result;
}

// The characters of every day have two bytes of A1 and more. One such byte before a letter or a
// backslash is of Latin-1 ("C:\\Users\\Jos\xE9\\x.dll"), and is Chinese by chance.
bool has_everyday_character(std::string_view line) {
  const auto is_high = [](char c) { return static_cast<unsigned char>(c) >= 0xA1; };
  return std::adjacent_find(line.begin(), line.end(),
                            [&](char a, char b) { return is_high(a) && is_high(b); }) != line.end();
}

// A Chinese Windows console writes GBK. Lines that are no UTF-8, and are whole in that code.
std::string with_chinese_lines(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string_view line = text.substr(at, end - at);
    const bool may_be = !is_utf8(line) && has_everyday_character(line);
    const std::string chinese = may_be ? from_chinese(line) : "";
    result.append(chinese.empty() ? line : chinese);
    at = end;
  }
  return result;
}

uint64_t line_ends(const char* at) {
  const EightBytes bytes = EightBytes::load(at);
  return bytes.equal_to('\n') | bytes.equal_to('\r');
}

bool is_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// Most lines have none: the expression is for those that look like it.
bool may_have_prefix(std::string_view line) {
  if (line.empty()) return false;
  if (line[0] == '[' || line[0] == '(') return true;
  if (line.size() > 4 && line[4] == '-' && line[0] >= '0' && line[0] <= '9') return true;
  size_t at = 0;
  while (at < line.size() && (is_word(line[at]) || line[at] == '-' || line[at] == '.')) at++;
  const size_t bar = at > 0 ? line.find_first_not_of(' ', at) : line.npos;
  return bar != line.npos && line[bar] == '|';
}

}  // namespace

Result<LogText> LogText::read(const std::string& path) {
  LogText log;
  const std::string file = path == "-" ? std::string("/dev/stdin") : path;
  // A map costs nothing for what is not looked at; pipes cannot be mapped.
  if (auto mapped = Tree("").map(file); mapped) {
    log.mapped_ = std::move(*mapped);
  } else {
    auto text = read_file(file);
    if (!text) return tl::unexpected<Error>(text.error());
    log.own_ = std::move(*text);
    log.cleaned_ = true;
  }
  log.clean();
  return log;
}

LogText::LogText(std::string text) : own_(std::move(text)), cleaned_(true) {
  clean();
}

void LogText::set(std::string text) {
  own_ = std::move(text);
  without_escapes_ = {};
  cleaned_ = true;
}

void LogText::clean() {
  if (const auto utf16 = utf16_of(text())) set(from_utf16(text(), *utf16));
  if (has_escapes(text())) {
    without_escapes_ = without_escapes(text());
    own_ = {};
  }
  if (text().size() <= kMostPasted && !is_utf8(text())) set(with_chinese_lines(text()));
  if (text().size() <= kMostPasted && text().find_first_of("\\&\xE2\xEF\xC2") != text().npos)
    set(as_it_was_printed(text()));
}

size_t line_begin(std::string_view text, size_t at) {
  const size_t limit = at > kMaxLine ? at - kMaxLine : 0;
  for (; at >= limit + 8; at -= 8)
    if (const uint64_t ends = line_ends(text.data() + at - 8); ends)
      return at - 7 + EightBytes::last(ends);
  while (at > limit && !ends_line(text[at - 1])) at--;
  return at;
}

size_t line_end(std::string_view text, size_t at) {
  const size_t limit = std::min(text.size(), at + kMaxLine);
  for (; at + 8 <= limit; at += 8)
    if (const uint64_t ends = line_ends(text.data() + at); ends)
      return at + EightBytes::first(ends);
  while (at < limit && !ends_line(text[at])) at++;
  return at;
}

size_t count_lines(std::string_view text) {
  constexpr size_t kRound = size_t{8} * 255;  // until a byte of the sums may overflow
  size_t count = 0, at = 0;
  while (at + kRound <= text.size()) {
    uint64_t sums = 0;
    for (const size_t end = at + kRound; at < end; at += 8)
      sums += EightBytes::load(text.data() + at).equal_to('\n') >> 7U;
    for (; sums != 0; sums >>= 8U) count += sums & 0xFFU;
  }
  const std::string_view rest = text.substr(at);
  return count + static_cast<size_t>(std::count(rest.begin(), rest.end(), '\n'));
}

std::string_view without_prefix(std::string_view line) {
  static const RE2 kPrefix(
      "(?:\\[(?:rank)?\\d+\\]:"                                  // torchrun, mpirun
      "|\\[\\d+,\\d+\\]<std(?:out|err)>:"                        // Open MPI
      "|\\([\\w:.<>-]+(?: [\\w:.<>-]+)?,? ?(?:pid|ip)=[^)]*\\)"  // ray, vLLM
      "|\\[default\\d+\\]:"
      "|[\\w.-]{1,64} +\\|"  // docker compose
      "|\\d{4}-\\d\\d-\\d\\d[T ][0-9:.,]+(?:Z|[+-]\\d\\d:?\\d\\d)?(?: std(?:out|err) [FP])?"
      ") ?",
      RE2::Latin1);
  re2::StringPiece rest(line.data(), line.size());
  while (may_have_prefix({rest.data(), rest.size()}) && RE2::Consume(&rest, kPrefix)) {
  }
  return {rest.data(), rest.size()};
}

}  // namespace cohabit::explain
