#include <nlohmann/json.hpp>

#include "findings/fingerprint.h"
#include "report/report.h"

namespace cohabit::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}

Json to_json(const Evidence& evidence) {
  Json json = {{"kind", evidence.kind}, {"text", evidence.text}};
  if (!evidence.consumer.empty()) json["consumer"] = evidence.consumer;
  if (!evidence.library.empty()) json["library"] = evidence.library;
  if (evidence.count >= 0) json["count"] = evidence.count;
  if (evidence.total >= 0) json["total"] = evidence.total;
  if (!evidence.remark.empty()) json["remark"] = evidence.remark;
  return json;
}

Json to_json(const Place& place) {
  if (place.file.empty()) return {};
  return {{"file", place.file}, {"line", place.line ? Json(place.line) : Json()}};
}

Json to_json(const Finding& finding, const std::string& environment) {
  Json libraries = Json::array();
  for (const Library& library : finding.libraries)
    libraries.push_back({{"path", library.path},
                         {"distribution", text_or_null(library.distribution)},
                         {"version", text_or_null(library.version)}});
  Json evidence = Json::array();
  for (const Evidence& one : finding.evidence) evidence.push_back(to_json(one));
  Json help = Json::array();
  for (const Help& one : finding.help)
    help.push_back({{"text", one.text},
                    {"command", text_or_null(one.command)},
                    {"safety", safety_name(one.safety)}});
  return {{"id", finding.id},
          {"code", finding.code},
          {"slug", finding.slug},
          {"severity", severity_name(finding.severity)},
          {"certainty", certainty_name(finding.certainty)},
          {"headline", finding.headline},
          {"imports", finding.imports},
          {"program", text_or_null(finding.program)},
          {"phase", text_or_null(finding.phase)},
          {"place", to_json(finding.place)},
          {"libraries", libraries},
          {"symbols", {{"count", finding.symbols.count}, {"examples", finding.symbols.examples}}},
          {"evidence", evidence},
          {"help", help},
          {"fingerprint", fingerprint(finding, environment)}};
}

Json to_json(const Suppressed& one, const std::string& environment) {
  Json json = to_json(one.finding, environment);
  json["suppressed"] = {{"by", one.by == SuppressedBy::kBaseline ? "baseline" : "ignore"},
                        {"reason", one.reason}};
  return json;
}

Json to_json(const std::vector<cuda::DriverLibrary>& libraries) {
  Json json = Json::array();
  for (const cuda::DriverLibrary& library : libraries)
    json.push_back({{"path", library.path},
                    {"version", text_or_null(library.version)},
                    {"found_by", text_or_null(library.found_by)}});
  return json;
}

Json to_json(const cuda::GpuHost& host) {
  Json gpus = Json::array();
  for (const cuda::Gpu& gpu : host.gpus)
    gpus.push_back({{"address", text_or_null(gpu.address)},
                    {"name", text_or_null(gpu.name)},
                    {"compute_capability", gpu.sm ? Json(cuda::sm_text(gpu.sm)) : Json()}});
  return {{"driver", text_or_null(host.driver())},
          {"kernel_driver", text_or_null(host.kernel_driver)},
          {"libcuda", to_json(host.libcuda)},
          {"libnvidia_ml", to_json(host.nvml)},
          {"gpus", gpus},
          {"gpu_memory", host.memory ? Json(host.memory) : Json()},
          {"wsl", host.is_wsl},
          {"container", text_or_null(host.container)}};
}

}  // namespace

std::string json(const Report& report) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["environment"] = {
      {"path", report.environment}, {"python", report.python}, {"program", report.program}};
  json["machine"] = {{"architecture", report.architecture}, {"glibc", report.glibc}};
  if (report.gpu) json["machine"]["gpu"] = to_json(*report.gpu);
  json["orders"] = Json::array();
  for (const Order& order : report.orders)
    json["orders"].push_back({{"imports", order.imports},
                              {"program", text_or_null(order.program)},
                              {"verdict", order.verdict},
                              {"phase", text_or_null(order.phase)},
                              {"findings", order.findings},
                              {"ended", text_or_null(order.ended)}});
  json["findings"] = Json::array();
  for (const Finding& finding : report.findings)
    json["findings"].push_back(to_json(finding, report.environment));
  json["suppressed"] = Json::array();
  for (const Suppressed& one : report.suppressed)
    json["suppressed"].push_back(to_json(one, report.environment));
  json["unknowns"] = report.unknowns;
  // Paths may hold any bytes; what is not UTF-8 is replaced.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace cohabit::report
