#include <fmt/format.h>

#include "report/printable.h"
#include "report/report.h"

namespace cohabit::report {

std::string concise(const Report& original) {
  const Report report = printable(original);
  std::string text;
  for (const Finding& finding : report.findings)
    text += fmt::format("{}[{}]: {}\n", severity_name(finding.severity), finding.code,
                        finding.headline);
  if (!report.unknowns.empty()) text += fmt::format("unknown: {}\n", report.unknowns.front());
  if (report.unknowns.size() > 1)
    text += fmt::format("unknown: and {} more\n", report.unknowns.size() - 1);
  return text;
}

}  // namespace cohabit::report
