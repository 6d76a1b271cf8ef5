#include "report/launch_needs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "findings/environment.h"
#include "report/painter.h"
#include "report/printable.h"

namespace cohabit::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;
constexpr size_t kWidestColumn = 48;  // what is wider stands on a line of its own

// As a shell would write it, without what the user's variables hold.
std::string shown_value(const NeededVariable& variable) {
  switch (variable.setting) {
    case Setting::kAppend:
      return fmt::format("${}{}{}", variable.name, variable.separator, variable.part);
    case Setting::kPrepend:
      return fmt::format("{}:${}", variable.part, variable.name);
    case Setting::kCopy:
      return "$" + variable.part;
    case Setting::kReplace:
      return variable.part.empty() ? "(unset)" : variable.part;
    default:
      return variable.part;
  }
}

// Rows of two columns and a rest.
class Columns {
 public:
  void add(std::string first, std::string second, std::string rest) {
    first_ = std::max(first_, first.size());
    second_ = std::max(second_, std::min(second.size(), kWidestColumn));
    rows_.push_back({std::move(first), std::move(second), std::move(rest)});
  }
  std::string text(const Painter& painter) const {
    std::string text;
    for (const Row& row : rows_) {
      text += painter.bold(fmt::format("{:<{}}", row.first, first_));
      text += fmt::format("  {:<{}}", row.second, second_);
      if (row.second.size() > kWidestColumn)
        text += fmt::format("\n{:<{}}", "", first_ + second_ + 2);
      text += fmt::format("  {}\n", row.rest);
    }
    return text;
  }

 private:
  struct Row {
    std::string first, second, rest;
  };
  size_t first_ = 0, second_ = 0;
  std::vector<Row> rows_;
};

constexpr std::string_view kLacksDriver =
    "No NVIDIA driver is here, so LD_LIBRARY_PATH for what is opened when a GPU is used is left "
    "out; --driver 580, for the machine's version, asks for it.";

Json dump_environment(const std::string& path, const std::string& python) {
  return {{"path", path}, {"python", python}};
}

std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string full(const NeedsReport& report, bool colour) {
  const Painter painter(colour);
  Columns variables;
  for (const NeededVariable& variable : report.needs.variables)
    variables.add(variable.name, printable(shown_value(variable)), printable(variable.reason));
  std::string text = report.needs.variables.empty()
                         ? "Nothing needs to be set before a process of this environment starts.\n"
                         : variables.text(painter);
  Columns tools;
  for (const FoundTool& tool : report.needs.tools)
    tools.add(tool.name, printable(tool.path),
              printable(fmt::format("{}, for {}", tool.origin, tool.reader)));
  if (!report.needs.tools.empty()) text += "\nfound:\n" + tools.text(painter);
  if (report.lacks_driver) text += fmt::format("\n{}\n", kLacksDriver);
  return text;
}

std::string shell(const NeedsReport& report) {
  std::string text;
  if (report.lacks_driver) text += fmt::format("# {}\n", kLacksDriver);
  for (const NeededVariable& variable : report.needs.variables) {
    text += fmt::format("# {}\n", printable(variable.reason));
    text += shell_line(variable, false) + "\n";
  }
  return text;
}

std::string json(const NeedsReport& report) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["environment"] = dump_environment(report.environment, report.python);
  json["variables"] = Json::array();
  for (const NeededVariable& variable : report.needs.variables)
    json["variables"].push_back({{"name", variable.name},
                                 {"value", variable.part},
                                 {"setting", setting_name(variable.setting)},
                                 {"reason", variable.reason},
                                 {"source", variable.source}});
  json["lacks_driver"] = report.lacks_driver;
  json["tools"] = Json::array();
  for (const FoundTool& tool : report.needs.tools)
    json["tools"].push_back({{"name", tool.name},
                             {"path", tool.path},
                             {"origin", tool.origin},
                             {"reader", tool.reader}});
  return dump(json);
}

std::string full(const VariableCheck& check, bool colour) {
  const Painter painter(colour);
  if (check.variables.empty())
    return "No variable is set that concerns a framework of this environment.\n";
  Columns columns;
  for (const JudgedVariable& variable : check.variables) {
    columns.add(variable.name, std::string(verdict_name(variable.verdict)), printable(variable.by));
    for (const std::string& note : variable.notes) columns.add("", "", printable(note));
  }
  std::string text = columns.text(painter);
  if (!check.findings.empty()) text += "\n";
  for (const Finding& finding : check.findings) {
    text += painter.severity(finding.severity,
                             fmt::format("{}[{}]", severity_name(finding.severity), finding.code));
    text += fmt::format(": {}\n", printable(finding.headline));
    for (const Help& help : finding.help) text += fmt::format("help: {}\n", printable(help.text));
  }
  return text;
}

std::string json(const VariableCheck& check) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["environment"] = dump_environment(check.environment, check.python);
  json["checked"] = Json::array();
  for (const JudgedVariable& variable : check.variables)
    json["checked"].push_back({{"name", variable.name},
                               {"verdict", verdict_name(variable.verdict)},
                               {"by", variable.by},
                               {"notes", variable.notes}});
  json["findings"] = Json::array();
  for (const Finding& finding : check.findings)
    json["findings"].push_back({{"code", finding.code},
                                {"severity", severity_name(finding.severity)},
                                {"headline", finding.headline}});
  return dump(json);
}

}  // namespace cohabit::report
