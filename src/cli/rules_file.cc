#include "cli/rules_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/paths.h"
#include "base/read_file.h"
#include "base/tree.h"
#include "report/printable.h"

namespace cohabit {
namespace {

bool is_text(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](unsigned char c) {
    return (c < ' ' && c != '\n' && c != '\r' && c != '\t') || c == 0x7f;
  });
}

}  // namespace

Result<Repair> read_rules_file(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return tl::unexpected<Error>(text.error());
  if (!is_text(*text))
    return fail(fmt::format(
        "{} is no file of rules: it has bytes that are no text (`cohabit fix --write` writes one)",
        report::printable(path)));
  auto repair = parse_rules(*text);
  if (!repair) return fail(fmt::format("{}: {}", path, report::printable(repair.error().message)));
  if (!text->ends_with('\n'))
    return fail(fmt::format(
        "{}: the end of the last line is missing, \"{}\": the file is cut off; write it again "
        "(`cohabit fix --write`), or end the line if it is whole",
        path, report::printable(text->substr(text->rfind('\n') + 1))));
  return repair;
}

std::vector<std::string> what_is_foreign(const Repair& repair, const Interpreter& python) {
  const Tree tree("");
  std::vector<std::string> names = repair.preloads;
  for (const FlagRule& rule : repair.flags) names.push_back(rule.file);
  std::vector<std::string> sentences;
  for (const std::string& name : names) {
    if (!name.starts_with('/')) continue;
    const auto is_ours = [&](const std::string& site) { return is_below(name, site); };
    if (!tree.stat(name))
      sentences.push_back(
          fmt::format("{}, which the rules name, is not there", report::printable(name)));
    else if (name.find("-packages/") != std::string::npos &&
             std::none_of(python.site_directories.begin(), python.site_directories.end(), is_ours))
      sentences.push_back(fmt::format("{}, which the rules name, is of another environment than {}",
                                      report::printable(name), python.prefix));
  }
  return sentences;
}

}  // namespace cohabit
