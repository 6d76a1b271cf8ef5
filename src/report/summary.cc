#include <fmt/format.h>

#include <algorithm>

#include "report/orders.h"
#include "report/printable.h"
#include "report/report.h"

namespace cohabit::report {
namespace {

std::string counts(const Report& report) {
  const auto count = [&](Severity severity) {
    return std::count_if(report.findings.begin(), report.findings.end(),
                         [&](const Finding& finding) { return finding.severity == severity; });
  };
  const auto word = [](int64_t number, std::string_view name) {
    return fmt::format("{} {}{}", number, name, number == 1 ? "" : "s");
  };
  return fmt::format("{}, {}, {}", word(count(Severity::kError), "error"),
                     word(count(Severity::kWarning), "warning"),
                     word(count(Severity::kNote), "note"));
}

// The first order that is unsound tells why; else everything there is, else the proof by runs. Each
// can be given as it stands.
std::string next_command(const Report& report) {
  for (const Order& order : report.orders)
    if (order.verdict == "unsound")
      return fmt::format("cohabit doctor --imports {}", fmt::join(order.imports, ","));
  const bool any = std::any_of(report.findings.begin(), report.findings.end(),
                               [](const auto& one) { return one.severity != Severity::kNote; });
  return any || report.orders.empty() ? "cohabit doctor" : "cohabit verify";
}

}  // namespace

std::string summary(const Report& original, bool colour) {
  const Report report = printable(original);
  const Painter painter(colour);
  std::string text =
      fmt::format("{} (Python {})\n\n", painter.bold(report.environment), report.python);
  text += report.orders.empty() ? "no framework that Cohabit knows is installed here\n"
                                : draw_orders(report, painter);
  return text + fmt::format("\n{}\nnext: {}\n", counts(report), next_command(report));
}

}  // namespace cohabit::report
