#include "report/orders.h"

#include <algorithm>
#include <map>

namespace cohabit::report {
namespace {

bool is_alone_or_pair(const Order& order) {
  return order.program.empty() && order.ended.empty() &&
         (order.imports.size() == 1 || order.imports.size() == 2);
}

std::string draw_lines(const Report& report, const Painter& painter) {
  std::string text;
  for (const Order& order : report.orders) {
    const std::string what = statement(order.program, order.imports);
    text +=
        fmt::format("{}: {}{}\n", what.empty() ? report.program : what, painter.bold(order.verdict),
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
      verdicts_[{first, second}] = order.verdict;
    }
  }

  std::string draw(const Painter& painter) const {
    size_t first_width = 0;
    for (const std::string& name : names_) first_width = std::max(first_width, name.size());
    std::string text = fmt::format("{:<{}}  {:<7}", "", first_width, "alone");
    for (const std::string& name : names_) text += fmt::format("  then {}", name);
    text += "\n";
    for (const std::string& name : names_) {
      text += fmt::format("{:<{}}  ", name, first_width) + cell(painter, name, "", 7);
      for (const std::string& second : names_)
        text += "  " + cell(painter, name, second, second.size() + 5);
      text.erase(text.find_last_not_of(' ') + 1);
      text += "\n";
    }
    return text;
  }

 private:
  std::string cell(const Painter& painter, const std::string& first, const std::string& second,
                   size_t width) const {
    const auto found = verdicts_.find({first, second});
    const std::string verdict = found == verdicts_.end() ? "" : found->second;
    const std::string padded = fmt::format("{:<{}}", verdict.empty() ? "-" : verdict, width);
    return verdict.empty() ? padded : painter.verdict(verdict, padded);
  }

  std::vector<std::string> names_;
  std::map<std::pair<std::string, std::string>, std::string> verdicts_;
};

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
  return table ? Table(report).draw(painter) : draw_lines(report, painter);
}

}  // namespace cohabit::report
