// Workflow commands of GitHub Actions: a line "::error file=...,line=...,title=...::message"
// becomes an annotation, beside the code if it is about a file of the project. A line break or "::"
// in a name must not make another command: the runner decodes %25, %0D, %0A, and in properties also
// %3A and %2C.
#include <fmt/format.h>

#include <iterator>

#include "report/orders.h"
#include "report/places.h"
#include "report/printable.h"
#include "report/report.h"

namespace cohabit::report {
namespace {

std::string encode(std::string_view text, bool property) {
  std::string result;
  for (const char c : text) {
    const bool special = c == '%' || c == '\r' || c == '\n';
    if (special || (property && (c == ':' || c == ',')))
      fmt::format_to(std::back_inserter(result), "%{:02X}", static_cast<unsigned char>(c));
    else
      result += c;
  }
  return result;
}

std::string_view command_of(Severity severity) {
  return severity == Severity::kError     ? "error"
         : severity == Severity::kWarning ? "warning"
                                          : "notice";
}

std::string message_of(const Finding& finding) {
  std::string text = finding.headline;
  for (const Help& help : finding.help) {
    text += "\nhelp: " + help.text;
    if (!help.command.empty()) text += ": " + help.command;
  }
  return text + fmt::format("\ncohabit explain {}", finding.code);
}

std::string place_of(const Finding& finding, const Report& report) {
  const Place place = shown_place(finding);
  const auto path = path_in_project(place.file, report);
  if (!path) return "";
  return fmt::format("file={},{}", encode(*path, true),
                     place.line ? fmt::format("line={},", place.line) : "");
}

}  // namespace

std::string github(const Report& original) {
  const Report report = printable(original);
  std::string text;
  for (const Finding& finding : report.findings)
    text += fmt::format("::{} {}title={}::{}\n", command_of(finding.severity),
                        place_of(finding, report),
                        encode(fmt::format("{} {}", finding.code, finding.slug), true),
                        encode(message_of(finding), false));
  for (const Order& order : report.orders)
    text += fmt::format("{}: {}\n", encode(statement(order.program, order.imports), true),
                        order.verdict);
  return text;
}

}  // namespace cohabit::report
