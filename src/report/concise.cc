#include <fmt/format.h>

#include "report/report.h"

namespace cohabit::report {

std::string concise(const Report& report) {
  std::string text;
  for (const Finding& finding : report.findings)
    text += fmt::format("{}[{}]: {}\n", severity_name(finding.severity), finding.code,
                        finding.headline);
  for (const std::string& unknown : report.unknowns) text += fmt::format("unknown: {}\n", unknown);
  return text;
}

}  // namespace cohabit::report
