#include "report/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/addresses.h"
#include "base/hidden_values.h"
#include "base/secrets.h"
#include "base/text.h"

namespace cohabit::report {
namespace {

// The length of the valid UTF-8 sequence at the start (RFC 3629), and its code point; 0: there is
// none.
size_t read_character(std::string_view text, uint32_t& code) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) {
    code = first;
    return 1;
  }
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  code = first & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; i++) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  const bool valid = code >= kLeast[length] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return valid ? length : 0;
}

// Controls of C0 and C1, separators of lines, and marks that turn the direction of what follows.
bool is_hidden(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0x200e || code == 0x200f;
}

void escape(std::string& text, std::string_view bytes) {
  for (const char c : bytes) {
    if (c == '\n')
      text += "\\n";
    else if (c == '\t')
      text += "\\t";
    else
      fmt::format_to(std::back_inserter(text), "\\x{:02x}", static_cast<unsigned char>(c));
  }
}

template <class F>
void for_each(std::vector<std::string>& texts, F& change) {
  for (std::string& text : texts) change(text);
}

template <class F>
void for_each(Finding& finding, F& change) {
  for (std::string* text : {&finding.headline, &finding.program, &finding.place.file})
    change(*text);
  for_each(finding.imports, change);
  for_each(finding.symbols.examples, change);
  for (Library& library : finding.libraries)
    for (std::string* text : {&library.path, &library.distribution, &library.version})
      change(*text);
  for (Evidence& row : finding.evidence)
    for (std::string* text : {&row.text, &row.consumer, &row.library, &row.remark}) change(*text);
  for (Help& help : finding.help)
    for (std::string* text : {&help.text, &help.command}) change(*text);
}

template <class F>
void for_each(Report& report, F change) {
  for (std::string* text : {&report.environment, &report.python, &report.program, &report.own_file})
    change(*text);
  for (Order& order : report.orders) {
    for_each(order.imports, change);
    change(order.program);
    change(order.ended);
  }
  for (Finding& finding : report.findings) for_each(finding, change);
  for (Suppressed& one : report.suppressed) {
    for_each(one.finding, change);
    change(one.reason);
  }
  for_each(report.unknowns, change);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    uint32_t code = 0;
    const size_t length = read_character(text, code);
    const std::string_view bytes = text.substr(0, length == 0 ? 1 : length);
    if (length == 0 || is_hidden(code))
      escape(result, bytes);
    else
      result += bytes;
    text.remove_prefix(bytes.size());
  }
  return result;
}

Report printable(Report report) {
  for_each(report, [](std::string& text) { text = printable(text); });
  return report;
}

Report without_secrets(Report report, const std::map<std::string, std::string>& variables) {
  // An error message of a program can hold the value of a variable.
  const std::vector<std::string> values = secret_values(variables);
  for_each(report, [&](std::string& text) { text = without_secrets(std::move(text), values); });
  return report;
}

std::string without_secrets(std::string text, const std::vector<std::string>& values) {
  hide_values(text, values);  // first: a value may have the shape of a token
  return without_credentials(std::move(text));
}

}  // namespace cohabit::report
