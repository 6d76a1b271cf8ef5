#include "cli/verified_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/arguments.h"
#include "repair/judge.h"
#include "repair/repair.h"
#include "report/printable.h"

namespace cohabit {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownFrames = 8;

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string crash_text(const VerifiedRow& row) {
  std::string text;
  const auto& frames = row.run.frames;
  for (size_t i = 0; i < std::min(frames.size(), kShownFrames); i++)
    text += fmt::format("    #{} {}\n", i, report::printable(frame_text(frames[i])));
  if (frames.size() > kShownFrames)
    text += fmt::format("    and {} more frames\n", frames.size() - kShownFrames);
  return text;
}

std::string size_text(std::optional<uint64_t> bytes, std::string_view what) {
  if (!bytes) return "";
  return fmt::format(", {:.1f} MiB {}", static_cast<double>(*bytes) / (1 << 20), what);
}

std::string version_of(const VerifiedRun& run, const std::string& module) {
  for (const auto& [name, version] : run.versions)
    if (name == module) return version;
  return "-";
}

// What ran on GPUs. That something runs on the CPU is no news.
std::string devices_text(const VerifiedRun& run) {
  std::string text;
  for (const VerifiedDevice& device : run.devices) {
    if (device.device == "cpu") continue;
    const std::string capability = device.compute_capability.empty()
                                       ? ""
                                       : ", compute capability " + device.compute_capability;
    text +=
        fmt::format("    {} on {}: {}{}{}{}{}\n", report::printable(device.framework),
                    report::printable(device.device), report::printable(device.name),
                    report::printable(capability), size_text(device.total, "in all"),
                    size_text(device.allocated, "allocated"), size_text(device.cached, "cached"));
  }
  return text;
}

// A run that ends well shows no more than that: a split that it did not step into is there.
std::string_view judgement_of(const VerifiedRow& row) {
  const bool is_ok = row.run.outcome == Outcome::kOk;
  if (is_ok && row.predicted == "unsound") return ": not confirmed, this run did not step into it";
  return !is_ok && row.predicted == "sound" ? ": the prediction was wrong" : "";
}

std::string row_text(const VerifiedRow& row) {
  std::string text =
      fmt::format("{}: {} ({:.1f} s{}), predicted {}{}\n", statement_of(row.imports),
                  outcome_name(row.run.outcome), row.run.seconds,
                  row.cached ? ", an earlier run" : "", row.predicted, judgement_of(row));
  if (!row.run.detail.empty()) text += fmt::format("    {}\n", report::printable(row.run.detail));
  text += devices_text(row.run);
  for (const std::string& note : row.run.notes)
    text += fmt::format("    {}\n", report::printable(note));
  for (const auto& [module, distributions] : row.run.other_metadata)
    text += fmt::format("    {} says it is {}; its metadata says {}\n", report::printable(module),
                        report::printable(version_of(row.run, module)),
                        report::printable(distributions));
  text += crash_text(row);
  for (const PredictedError& error : row.errors)
    text += fmt::format("    {} {}: {}\n", error.explains ? "explained by" : "predicted",
                        error.code, report::printable(error.headline));
  return text;
}

Json frames_json(const std::vector<NativeFrame>& frames) {
  Json json = Json::array();
  for (const NativeFrame& frame : frames)
    json.push_back(
        {{"library", frame.library}, {"symbol", frame.symbol}, {"offset", frame.offset}});
  return json;
}

Json device_json(const VerifiedDevice& device) {
  Json json = {{"framework", device.framework},
               {"device", device.device},
               {"name", device.name},
               {"compute_capability", device.compute_capability}};
  const std::pair<const char*, std::optional<uint64_t>> sizes[] = {
      {"total", device.total}, {"allocated", device.allocated}, {"cached", device.cached}};
  for (const auto& [key, bytes] : sizes) json[key] = bytes ? Json(*bytes) : Json();
  return json;
}

Json row_json(const VerifiedRow& row) {
  Json versions = Json::object(), errors = Json::array(), devices = Json::array(),
       libraries = Json::array(), metadata = Json::object();
  for (const VerifiedDevice& device : row.run.devices) devices.push_back(device_json(device));
  for (const auto& [path, version] : row.run.libraries)
    libraries.push_back({{"path", path}, {"version", version}});
  for (const auto& [module, says] : row.run.other_metadata) metadata[module] = says;
  for (const auto& [module, version] : row.run.versions) versions[module] = version;
  for (const PredictedError& error : row.errors)
    errors.push_back(
        {{"code", error.code}, {"headline", error.headline}, {"explains", error.explains}});
  return {{"imports", row.imports},
          {"outcome", outcome_name(row.run.outcome)},
          {"detail", row.run.detail},
          {"predicted", row.predicted},
          {"predicted_errors", errors},
          {"agrees", row.agrees()},
          {"seconds", row.run.seconds},
          {"versions", versions},
          {"other_metadata", metadata},
          {"notes", row.run.notes},
          {"devices", devices},
          {"libraries", libraries},
          {"frames", frames_json(row.run.frames)},
          {"cached", row.cached}};
}

}  // namespace

void predict(World& world, const Repair& repair, const report::Report& about, VerifiedRow& row) {
  Sequence sequence = plan_sequence(world, row.imports, own_variables(""));
  sequence.trace = apply(repair, std::move(sequence.trace));
  report::Report report;
  report.findings = about.findings;
  if (!examine_sequence(world, sequence, report) || report.orders.empty()) return;
  const report::Order& order = report.orders.front();
  row.predicted = order.verdict;
  for (const Finding& finding : report.findings) {
    const bool is_latent = is_latent_split(finding);
    const bool is_error = finding.severity == Severity::kError && has(order.findings, finding.id);
    if (!is_error && !is_latent) continue;
    PredictedError& error = row.errors.emplace_back();
    error.code = finding.code;
    error.headline = finding.headline;
    error.broken = finding.broken;
    error.is_latent = is_latent;
    for (const Library& library : finding.libraries) error.libraries.push_back(library.path);
  }
}

void find_explanation(VerifiedRow& row) {
  const std::string& exception = row.run.exception;
  for (PredictedError& error : row.errors) {
    for (const NativeFrame& frame : row.run.frames)
      error.explains |= has(error.libraries, frame.library);
    if (exception.empty()) continue;
    for (const std::string& file : row.run.raised_in) error.explains |= has(error.broken, file);
    const std::string predicted = error.headline.substr(0, error.headline.find(" is raised"));
    error.explains |= error.code == "PY302" && exception.starts_with(predicted);
  }
  std::erase_if(row.errors,
                [](const PredictedError& error) { return error.is_latent && !error.explains; });
}

bool is_script(const std::string& module) {
  return module.ends_with(kHelp);
}

std::string statement_of(const std::vector<std::string>& imports) {
  return imports.size() == 1 && is_script(imports[0])
             ? imports[0]
             : fmt::format("import {}", fmt::join(imports, ", "));
}

std::string full_text(const std::vector<VerifiedRow>& rows) {
  std::string text;
  for (const VerifiedRow& row : rows) text += row_text(row);
  return text;
}

std::string json_text(const World& world, const std::vector<VerifiedRow>& rows) {
  Json json;
  json["schema_version"] = 1;
  json["environment"] = {{"path", world.python->prefix},
                         {"python", world.python->version},
                         {"program", world.python->executable}};
  json["runs"] = Json::array();
  for (const VerifiedRow& row : rows) json["runs"].push_back(row_json(row));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace cohabit
