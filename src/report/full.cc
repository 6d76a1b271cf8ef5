// The drawing: a headline, an arrow to the party concerned, a gutter with the evidence, what is
// known and how, and a help line that can be pasted. After rustc, whose readers need no manual.
#include <fmt/format.h>

#include <algorithm>

#include "report/orders.h"
#include "report/painter.h"
#include "report/printable.h"
#include "report/report.h"

namespace cohabit::report {
namespace {

constexpr size_t kShown = 3;  // rows of one kind before "and 41 more"
constexpr size_t kUnknownsShown = 5;
constexpr std::string_view kGutter = "   |  ";

// What comes before the package directory says only where the environment is.
std::string shorten(const std::string& path) {
  constexpr std::string_view kSite = "/site-packages/";
  const size_t at = path.rfind(kSite);
  return at == std::string::npos ? path : path.substr(at + kSite.size());
}

std::string origin(const Library& library) {
  if (library.distribution.empty()) return "";
  return fmt::format(" ({} {})", library.distribution, library.version);
}

std::string arrow(const Finding& finding) {
  std::string text;
  for (size_t i = 0; i < finding.libraries.size() && i < kShown; i++) {
    const Library& library = finding.libraries[i];
    text +=
        fmt::format("  {} {}{}\n", i == 0 ? "-->" : "   ", shorten(library.path), origin(library));
  }
  if (finding.libraries.size() > kShown)
    text += fmt::format("      and {} more\n", finding.libraries.size() - kShown);
  return text;
}

// Rows of one consumer form a block; the consumer's name heads it when there are several.
struct Block {
  std::string consumer;
  std::vector<const Evidence*> rows;
};

std::vector<Block> blocks_of(const Finding& finding) {
  std::vector<Block> blocks;
  for (const Evidence& row : finding.evidence) {
    if (row.consumer.empty()) continue;
    const bool starts = row.kind == "captured" || row.kind == "search";
    if (blocks.empty() || (starts && !blocks.back().rows.empty()) ||
        blocks.back().consumer != row.consumer)
      blocks.push_back({row.consumer, {}});
    blocks.back().rows.push_back(&row);
  }
  return blocks;
}

std::string row_text(const Evidence& row, size_t width) {
  std::string text = row.text;
  const bool in_columns = row.kind == "captured" || row.kind == "stays" || row.kind == "elsewhere";
  if (in_columns) text = fmt::format("{:<{}}  {}", text, width, shorten(row.library));
  if (!row.remark.empty()) text += fmt::format("  ({})", row.remark);
  return fmt::format("{}{}\n", kGutter, text);
}

std::string draw_blocks(const Finding& finding) {
  const std::vector<Block> blocks = blocks_of(finding);
  std::string text;
  for (size_t i = 0; i < blocks.size() && i < kShown; i++) {
    if (blocks.size() > 1) text += fmt::format("{}{}:\n", kGutter, shorten(blocks[i].consumer));
    size_t width = 0;
    for (const Evidence* row : blocks[i].rows)
      if (row->count >= 0 && row->kind != "entered") width = std::max(width, row->text.size());
    for (const Evidence* row : blocks[i].rows)
      text += (blocks.size() > 1 ? std::string() : "") + row_text(*row, width);
  }
  if (blocks.size() > kShown) {
    int64_t names = 0;
    for (size_t i = kShown; i < blocks.size(); i++)
      for (const Evidence* row : blocks[i].rows)
        if (row->kind == "captured") names += row->count;
    text += fmt::format("{}and {} more, {} names in all\n", kGutter, blocks.size() - kShown, names);
  }
  return text;
}

// The text may say what it is about, or end before it ("raised in line 3 of").
std::string with_library(const Evidence& row) {
  const std::string name = row.library.substr(row.library.rfind('/') + 1);
  const bool is_said = row.text.find(name) != std::string::npos;  // "" is always said
  return is_said || row.kind == "search" ? row.text
                                         : fmt::format("{} {}", row.text, shorten(row.library));
}

std::string draw_rest(const Finding& finding) {
  std::string text;
  size_t shown = 0;
  size_t left = 0;
  for (const Evidence& row : finding.evidence) {
    if (!row.consumer.empty()) continue;
    if (row.kind == "place" && ++shown > kShown) {
      left++;
    } else if (row.kind == "observed") {
      text += fmt::format("   = observed: {}\n", row.text);
    } else {
      text += fmt::format("{}{}\n", kGutter, with_library(row));
    }
  }
  if (left) text += fmt::format("{}and {} more place{}\n", kGutter, left, left == 1 ? "" : "s");
  return text;
}

// The first few; all are in the JSON report.
std::string draw_unknowns(const Report& report) {
  std::string text;
  const size_t shown = std::min(report.unknowns.size(), kUnknownsShown);
  for (size_t i = 0; i < shown; i++) text += fmt::format("unknown: {}\n", report.unknowns[i]);
  if (report.unknowns.size() > shown)
    text += fmt::format("unknown: and {} more (all are in --format json)\n",
                        report.unknowns.size() - shown);
  return text;
}

std::string draw(const Finding& finding, const Painter& painter) {
  const std::string label = fmt::format("{}[{}]", severity_name(finding.severity), finding.code);
  std::string text =
      painter.severity(finding.severity, label) + painter.bold(": " + finding.headline) + "\n";
  if (finding.severity == Severity::kNote) return text;  // their details are in the JSON report
  text += arrow(finding) + draw_blocks(finding) + draw_rest(finding);
  text +=
      fmt::format("   = certainty: {}{}\n",
                  finding.certainty == Certainty::kSimulated ? "simulated from files"
                                                             : certainty_name(finding.certainty),
                  finding.imports.empty() && finding.program.empty()
                      ? ""
                      : "; order: " + statement(finding.program, finding.imports));
  for (size_t i = 0; i < finding.help.size(); i++) {
    const Help& help = finding.help[i];
    text += (i == 0 ? painter.paint("1;32", "help") + ": " : "      ") + help.text + "\n";
    if (!help.command.empty()) text += "        " + help.command + "\n";
  }
  return text + fmt::format("{}more: `cohabit explain {}`\n",
                            finding.help.empty() ? "help: " : "      ", finding.code);
}

std::string draw_suppressed(const Report& report) {
  const auto in_baseline =
      std::count_if(report.suppressed.begin(), report.suppressed.end(),
                    [](const Suppressed& one) { return one.by == SuppressedBy::kBaseline; });
  if (report.suppressed.empty()) return "";
  return fmt::format("not counted: {} ignored, {} in the baseline\n",
                     static_cast<std::ptrdiff_t>(report.suppressed.size()) - in_baseline,
                     in_baseline);
}

}  // namespace

std::string full(const Report& original, bool colour) {
  const Report report = printable(original);
  const Painter painter(colour);
  std::string text;
  for (const Finding& finding : report.findings)
    text += draw(finding, painter) + (finding.severity == Severity::kNote ? "" : "\n");
  return text + draw_unknowns(report) + draw_suppressed(report) + draw_orders(report, painter);
}

}  // namespace cohabit::report
