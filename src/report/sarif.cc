// SARIF 2.1.0 (OASIS): one run, the rules that fired, a result for each finding. A result points to
// the line that is known, or to the first file concerned, else to the program or the environment:
// GitHub refuses a whole file for one result without a location. Files of the environment are
// relative to it, those of the project to the current directory, so that alerts stay the same on
// another machine.
#include <fmt/format.h>

#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "base/paths.h"
#include "findings/fingerprint.h"
#include "findings/rule.h"
#include "report/places.h"
#include "report/printable.h"
#include "report/report.h"
#include "version.h"

namespace cohabit::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kBase = "ENVIRONMENT";
constexpr std::string_view kProject = "%SRCROOT%";  // the name that services know

// RFC 3986: all but unreserved characters and "/" as %XX.
std::string uri_path(std::string_view path) {
  std::string result;
  for (const char c : path) {
    const bool plain = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
                       std::string_view("-._~/").find(c) != std::string_view::npos;
    if (plain)
      result += c;
    else
      fmt::format_to(std::back_inserter(result), "%{:02X}", static_cast<unsigned char>(c));
  }
  return result;
}

Json location_of(const Place& place, const Report& report) {
  const std::string& path = place.file;
  Json artifact = {{"uri", "file://" + uri_path(path)}};
  if (is_below(path, report.environment))
    artifact = {{"uri", uri_path(path.substr(report.environment.size() + 1))},
                {"uriBaseId", kBase}};
  else if (const auto in_project = path_in_project(path, report))
    artifact = {{"uri", uri_path(*in_project)}, {"uriBaseId", kProject}};
  Json physical = {{"artifactLocation", artifact}};
  if (place.line) physical["region"] = {{"startLine", place.line}};
  return {{"physicalLocation", physical}};
}

Json base_at(const std::string& directory) {
  return {{"uri", "file://" + uri_path(directory) + (directory == "/" ? "" : "/")}};
}

std::string level_of(Severity severity) {
  return std::string(severity_name(severity));  // SARIF has the same three words
}

std::string message_of(const Finding& finding) {
  std::string text = finding.headline;
  for (const Help& help : finding.help) {
    text.append("\n").append(help.text);
    if (!help.command.empty()) text.append(": ").append(help.command);
  }
  return text;
}

class Rules {
 public:
  size_t index_of(const Finding& finding) {
    const auto [at, fresh] = indexes_.try_emplace(finding.code, list_.size());
    if (fresh) list_.push_back(describe(finding));
    return at->second;
  }
  const Json& list() const { return list_; }

 private:
  static Json describe(const Finding& finding) {
    const Rule* rule = find_rule_by_code(finding.code);
    Json json = {{"id", finding.code}, {"name", finding.slug}};
    if (!rule) return json;
    json["shortDescription"] = {{"text", rule->summary}};
    json["fullDescription"] = {{"text", rule->finds}};
    json["help"] = {{"text", explain_rule(*rule)}};
    json["defaultConfiguration"] = {{"level", level_of(rule->severity)}};
    return json;
  }

  Json list_ = Json::array();
  std::map<std::string, size_t> indexes_;
};

Json result_of(const Finding& finding, const Report& report, Rules& rules) {
  Json json = {{"ruleId", finding.code},
               {"ruleIndex", rules.index_of(finding)},
               {"level", level_of(finding.severity)},
               {"message", {{"text", message_of(finding)}}}};
  json["locations"] = Json::array({location_of(place_for_services(finding, report), report)});
  json["relatedLocations"] = Json::array();
  const bool shows_first = finding.place.file.empty() || finding.libraries.empty() ||
                           finding.place.file == finding.libraries.front().path;
  for (size_t i = shows_first ? 1 : 0; i < finding.libraries.size(); i++)
    json["relatedLocations"].push_back(location_of({finding.libraries[i].path, 0}, report));
  json["partialFingerprints"] = {{"cohabit/v1", fingerprint(finding, report.environment)}};
  json["properties"] = {{"certainty", certainty_name(finding.certainty)},
                        {"imports", finding.imports},
                        {"symbols", finding.symbols.count}};
  return json;
}

}  // namespace

std::string sarif(const Report& original) {
  const Report report = printable(original);
  Rules rules;
  Json results = Json::array();
  for (const Finding& finding : report.findings)
    results.push_back(result_of(finding, report, rules));
  for (const Suppressed& one : report.suppressed) {
    Json result = result_of(one.finding, report, rules);
    result["suppressions"] = Json::array({{{"kind", "external"}, {"justification", one.reason}}});
    results.push_back(std::move(result));
  }
  Json notifications = Json::array();
  for (const std::string& unknown : report.unknowns)
    notifications.push_back({{"level", "note"}, {"message", {{"text", unknown}}}});
  Json run = {
      {"tool",
       {{"driver", {{"name", "cohabit"}, {"version", COHABIT_VERSION}, {"rules", rules.list()}}}}},
      {"columnKind", "utf16CodeUnits"}};
  Json bases = Json::object();
  if (!report.environment.empty()) bases[kBase] = base_at(report.environment);
  if (!report.directory.empty()) bases[kProject] = base_at(report.directory);
  if (!bases.empty()) run["originalUriBaseIds"] = bases;
  run["invocations"] =
      Json::array({{{"executionSuccessful", true}, {"toolExecutionNotifications", notifications}}});
  run["results"] = std::move(results);
  const Json json = {
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
      {"version", "2.1.0"},
      {"runs", Json::array({run})},
  };
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace cohabit::report
