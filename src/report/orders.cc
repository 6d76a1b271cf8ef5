#include "report/orders.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace cohabit::report {
namespace {

constexpr std::string_view kAtImport = "import", kAtDevice = "device initialisation";
constexpr size_t kVerdictWidth = 7;  // "unsound"

bool is_alone_or_pair(const Order& order) {
  return order.program.empty() && order.ended.empty() &&
         (order.imports.size() == 1 || order.imports.size() == 2);
}

// Imports that work, and an operation that does not: said where it is.
std::string shown_verdict(const Order& order) {
  if (order.phase.empty() || order.phase == kAtImport) return order.verdict;
  return fmt::format("{} ({})", order.verdict, order.phase == kAtDevice ? "device" : "first use");
}

std::string draw_lines(const Report& report, const Painter& painter) {
  std::string text;
  for (const Order& order : report.orders) {
    const std::string what = statement(order.program, order.imports);
    text += fmt::format("{}: {}{}\n", what.empty() ? report.program : what,
                        painter.bold(shown_verdict(order)),
                        order.ended.empty() ? "" : fmt::format(" (the real run {})", order.ended));
  }
  return text;
}

// A row for what is imported first, a column for what follows.
class Table {
 public:
  explicit Table(const Report& report) {
    for (const Order& order : report.orders) {
      const std::string& first = order.imports.front();
      const bool alone = order.imports.size() == 1;
      const std::string second = alone ? "" : order.imports.back();
      if (alone) names_.push_back(first);
      verdicts_[{first, second}] = {order.verdict, shown_verdict(order)};
      size_t& width = widths_[second];
      width = std::max({width, alone ? kAlone.size() : second.size() + kThen.size(),
                        verdicts_[{first, second}].shown.size()});
    }
  }

  std::string draw(const Painter& painter) const {
    size_t first_width = 0;
    for (const std::string& name : names_) first_width = std::max(first_width, name.size());
    std::string text = fmt::format("{:<{}}  {:<{}}", "", first_width, kAlone, width_of(""));
    for (const std::string& name : names_)
      if (follows(name))
        fmt::format_to(std::back_inserter(text), "  {:<{}}", fmt::format("{}{}", kThen, name),
                       width_of(name));
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
    for (const std::string& name : names_) {
      text += fmt::format("{:<{}}  ", name, first_width) + cell(painter, name, "");
      for (const std::string& second : names_)
        if (follows(second)) text += "  " + cell(painter, name, second);
      text.erase(text.find_last_not_of(' ') + 1);
      text += "\n";
    }
    return text;
  }

 private:
  static constexpr std::string_view kAlone = "alone", kThen = "then ";
  struct Cell {
    std::string verdict, shown;
  };

  // Some are looked at only alone.
  bool follows(const std::string& name) const { return widths_.contains(name); }

  size_t width_of(const std::string& second) const {
    const auto found = widths_.find(second);
    const size_t least = second.empty() ? kVerdictWidth : second.size() + kThen.size();
    return found == widths_.end() ? least : std::max(found->second, least);
  }

  std::string cell(const Painter& painter, const std::string& first,
                   const std::string& second) const {
    const auto found = verdicts_.find({first, second});
    const std::string shown = found == verdicts_.end() ? "-" : found->second.shown;
    const std::string padded = fmt::format("{:<{}}", shown, width_of(second));
    return found == verdicts_.end() ? padded : painter.verdict(found->second.verdict, padded);
  }

  std::vector<std::string> names_;
  std::map<std::pair<std::string, std::string>, Cell> verdicts_;
  std::map<std::string, size_t> widths_;  // of the columns, by what follows; "": alone
};

bool belongs_to_an_order(const Report& report, const Finding& finding) {
  return std::any_of(report.orders.begin(), report.orders.end(), [&](const Order& order) {
    return std::find(order.findings.begin(), order.findings.end(), finding.id) !=
           order.findings.end();
  });
}

// Errors beside an order that is called sound, which seem to contradict it.
std::string draw_apart(const Report& report) {
  if (std::none_of(report.orders.begin(), report.orders.end(),
                   [](const Order& order) { return order.verdict == "sound"; }))
    return "";
  std::set<std::string_view> codes;
  for (const Finding& finding : report.findings)
    if (finding.severity == Severity::kError && !belongs_to_an_order(report, finding))
      codes.insert(finding.code);
  if (codes.empty()) return "";
  return fmt::format(
      "{}: about the environment, in whatever order; \"sound\" says that the files which lie there "
      "load and bind well, not that they are the right ones\n",
      fmt::join(codes, ", "));
}

}  // namespace

std::string statement(const std::string& program, const std::vector<std::string>& imports) {
  if (!program.empty()) return program;
  std::string text;
  for (size_t i = 0; i < imports.size(); i++) text += (i ? "; import " : "import ") + imports[i];
  return text;
}

std::string draw_orders(const Report& report, const Painter& painter) {
  const bool table = report.orders.size() > 1 &&
                     std::all_of(report.orders.begin(), report.orders.end(), is_alone_or_pair);
  return (table ? Table(report).draw(painter) : draw_lines(report, painter)) + draw_apart(report);
}

}  // namespace cohabit::report
