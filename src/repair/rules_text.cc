// The rules as text: what libcohabit_preload.so reads (runtime/preload/preload.c has the grammar)
// and what `cohabit fix --write` and `cohabit run --repair FILE` exchange.
#include <fmt/format.h>

#include <algorithm>

#include "base/hexadecimal.h"
#include "repair/repair.h"

namespace cohabit {
namespace {

constexpr std::string_view kHead = "cohabit-rules 1";
constexpr size_t kMostText = 65535;  // as much as the interposer takes
constexpr size_t kMostRules = 64;

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == ' ' || c == '\n' || c == ';' || c == '%')
      result += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    else
      result += c;
  }
  return result;
}

Result<std::string> unescaped(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size(); at++) {
    if (text[at] != '%') {
      result += text[at];
      continue;
    }
    const int high = at + 2 < text.size() ? hexadecimal_digit(text[at + 1]) : -1;
    const int low = at + 2 < text.size() ? hexadecimal_digit(text[at + 2]) : -1;
    if (high < 0 || low < 0 || high + low == 0)
      return fail(fmt::format("bad escape in \"{}\": % and two digits 0-9a-f are expected", text));
    result += static_cast<char>(high * 16 + low);
    at += 2;
  }
  return result;
}

Result<void> add_flag_rule(std::string_view text, Repair& repair) {
  const size_t space = text.find(' ');
  const std::string_view change = text.substr(0, space);
  if (space == std::string_view::npos || (change != "-global" && change != "+deepbind"))
    return fail(
        fmt::format("not a rule about dlopen: \"{}\"; -global FILE or +deepbind FILE is "
                    "expected",
                    text));
  auto file = unescaped(text.substr(space + 1));
  if (!file) return tl::unexpected<Error>(file.error());
  repair.flags.push_back(
      {change == "-global" ? FlagChange::kDropGlobal : FlagChange::kAddDeepbind, *file});
  return {};
}

Result<void> add_line(std::string_view line, Repair& repair) {
  const size_t space = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, space);
  const std::string_view rest = line.substr(std::min(space + 1, line.size()));
  if (word == "dlopen") return add_flag_rule(rest, repair);
  auto text = unescaped(rest);
  if (!text) return tl::unexpected<Error>(text.error());
  if (word == "preload" && !text->empty()) {
    repair.preloads.push_back(*text);
    return {};
  }
  const size_t equals = text->find('=');
  if (word == "environment" && equals != std::string::npos && equals > 0) {
    repair.variables.emplace_back(text->substr(0, equals), text->substr(equals + 1));
    return {};
  }
  return fail(fmt::format("not a rule: \"{}\"; preload, environment or dlopen is expected", line));
}

}  // namespace

std::string format_rules(const Repair& repair, char separator) {
  std::string text(kHead);
  for (const auto& [name, value] : repair.variables)
    text += fmt::format("{}environment {}", separator, escaped(fmt::format("{}={}", name, value)));
  for (const std::string& name : repair.preloads)
    text += fmt::format("{}preload {}", separator, escaped(name));
  for (const FlagRule& rule : repair.flags)
    text += fmt::format("{}dlopen {} {}", separator,
                        rule.change == FlagChange::kDropGlobal ? "-global" : "+deepbind",
                        escaped(rule.file));
  return separator == '\n' ? text + "\n" : text;
}

Result<Repair> parse_rules(std::string_view text) {
  if (text.size() > kMostText) return fail("more rules than fit in 64 KiB");
  Repair repair;
  bool first = true;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of("\n;", begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (first && line.ends_with('\r'))
      return fail(
          "rules have lines that end as those of Windows do: write them as `cohabit fix "
          "--write` does, with line feeds alone");
    if (first && line != kHead)
      return fail(fmt::format("rules begin with the line \"{}\", not with \"{}\"", kHead,
                              line.substr(0, 80)));
    if (!first && !line.empty())
      if (auto done = add_line(line, repair); !done) return tl::unexpected<Error>(done.error());
    first = false;
  }
  if (first) return fail(fmt::format("no rules: the line \"{}\" is expected first", kHead));
  if (repair.flags.size() > kMostRules)
    return fail(fmt::format("more than {} rules about dlopen", kMostRules));
  return repair;
}

}  // namespace cohabit
