#include "report/repairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "base/paths.h"
#include "findings/environment.h"
#include "report/printable.h"

namespace cohabit::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;
constexpr size_t kShown = 3;

std::string bold(bool colour, const std::string& text) {
  return colour ? fmt::format("\033[1m{}\033[0m", text) : text;
}

std::string error_lines(const RepairReport& report) {
  std::string text;
  for (size_t i = 0; i < report.findings.size(); i++) {
    const Finding& finding = report.findings[i];
    const std::string& kind = report.finding_classes[i];
    text += fmt::format("{} [{}] {}{}\n", finding.id, finding.code, finding.headline,
                        kind == "launch"    ? ""
                        : kind == "package" ? " (not at launch: the packages are to be changed)"
                                            : " (not at launch)");
  }
  return text;
}

// Those between libraries of what is cleared come first.
std::string move_lines(const RepairReport& report, const RepairRow& row) {
  const Effects& effects = row.effects;
  std::set<std::string_view> named;
  for (const Finding& finding : report.findings)
    if (std::find(row.clears.begin(), row.clears.end(), finding.id) != row.clears.end())
      for (const Library& library : finding.libraries) named.insert(library.path);
  std::vector<Move> moves = effects.moves;
  std::stable_partition(moves.begin(), moves.end(), [&](const Move& move) {
    return named.contains(move.consumer) && named.contains(move.from);
  });
  std::string text;
  for (size_t i = 0; i < std::min(moves.size(), kShown); i++) {
    const Move& move = moves[i];
    text += fmt::format("   |  {} names of {} move from {} to {}\n", move.count,
                        last_part(move.consumer), last_part(move.from), last_part(move.to));
  }
  if (effects.moves.size() > kShown)
    text += fmt::format("   |  and {} more moves, {} names in all\n", effects.moves.size() - kShown,
                        effects.moved);
  return text;
}

// The program that was looked at, or one that stands for all.
std::string command_of(const RepairReport& report) {
  constexpr std::string_view kPython = "python ";
  return shell_word(report.program) +
         (report.title.starts_with(kPython) ? report.title.substr(kPython.size() - 1) : " app.py");
}

// What this shell preloads for itself must stay.
std::string_view preloads_besides() {
  const char* set = std::getenv("LD_PRELOAD");
  return set && *set ? ":$LD_PRELOAD" : "";
}

// What is typed to have it.
std::string how(const RepairReport& report, const RepairRow& row) {
  const Repair& repair = row.repair;
  if (!repair.package.empty() || !repair.processes.empty()) return "";
  if (!repair.order.empty())
    return fmt::format("        python -c 'import {}'\n", fmt::join(repair.order, ", "));
  const std::string command = command_of(report);
  if (repair.flags.empty() && repair.variables.empty())
    return fmt::format("        LD_PRELOAD={}{} {}\n", fmt::join(repair.preloads, ":"),
                       preloads_besides(), command);
  return fmt::format("        cohabit run -- {}\n", command);
}

// What changes packages is no other way to the same end where something else was to be repaired.
std::string introduction(const RepairReport& report, size_t at) {
  if (at == 0) return "repair:";
  const bool adds = !report.repairs[at].repair.package.empty() &&
                    std::none_of(report.repairs[at].clears.begin(), report.repairs[at].clears.end(),
                                 [&](const std::string& id) {
                                   const auto& first = report.repairs[0].clears;
                                   return std::find(first.begin(), first.end(), id) != first.end();
                                 });
  return adds ? "   and:" : "    or:";
}

std::string row_lines(const RepairReport& report, size_t at, bool colour) {
  const RepairRow& row = report.repairs[at];
  std::string text =
      fmt::format("{} {}\n", bold(colour, introduction(report, at)), describe(row.repair));
  text += how(report, row);
  if (row.repair.launches() && row.leaves.empty())
    text += row.every_order ? "   = sound in every order that was looked at\n"
                            : "   = sound in this order, not in every other\n";
  if (!row.clears.empty()) text += fmt::format("   = clears {}\n", fmt::join(row.clears, ", "));
  if (!row.leaves.empty()) text += fmt::format("   = leaves {}\n", fmt::join(row.leaves, ", "));
  text += move_lines(report, row);
  for (const std::string& cost : row.effects.costs) text += fmt::format("   = cost: {}\n", cost);
  for (const std::string& risk : row.effects.risks) text += fmt::format("   = risk: {}\n", risk);
  if (row.verified)
    text += *row.verified ? "   = verified by a run\n"
                          : fmt::format("   = not confirmed: {}\n", printable(row.verification));
  return text;
}

Json to_json(const Effects& effects) {
  Json moves = Json::array();
  for (const Move& move : effects.moves)
    moves.push_back(
        {{"consumer", move.consumer}, {"from", move.from}, {"to", move.to}, {"count", move.count}});
  return {{"moves", moves}, {"costs", effects.costs}, {"risks", effects.risks}};
}

Json to_json(const RepairRow& row) {
  Json json = {{"kind", repair_kind_name(row.repair.kind())},
               {"spec", spec_of(row.repair)},
               {"text", describe(row.repair)},
               {"clears", row.clears},
               {"leaves", row.leaves},
               {"verified", row.verified ? Json(*row.verified) : Json()},
               {"verification", row.verification},
               {"every_order", row.every_order},
               {"launch", row.repair.launches()},
               {"rules", row.repair.launches() ? Json(format_rules(row.repair, '\n')) : Json()}};
  json.update(to_json(row.effects));
  return json;
}

}  // namespace

std::string more_imports(const RepairReport& report) {
  if (report.imports_are_open)
    return "the program imports, or starts, what is decided while it runs";
  const auto& names = report.later_imports;
  if (names.empty()) return "";
  const auto shown = static_cast<ptrdiff_t>(std::min(names.size(), kShown));
  return fmt::format("the program may import {}{} later",
                     fmt::join(names.begin(), names.begin() + shown, ", "),
                     names.size() > kShown ? ", ..." : "");
}

std::string full(const RepairReport& report, bool colour) {
  std::string text = error_lines(report);
  if (!text.empty()) text += "\n";
  if (report.findings.empty()) text += "Nothing to repair.\n";
  for (size_t i = 0; i < report.repairs.size(); i++) text += row_lines(report, i, colour);
  if (report.repairs.empty() && !report.findings.empty()) text += "No repair was found.\n";
  if (!report.findings.empty()) text += "\n";
  for (const Order& order : report.orders)
    text += fmt::format("{}: {}\n",
                        order.imports.empty()
                            ? report.title
                            : fmt::format("import {}", fmt::join(order.imports, ", ")),
                        order.verdict);
  for (const std::string& unknown : report.unknowns) text += fmt::format("unknown: {}\n", unknown);
  return text;
}

std::string json(const RepairReport& report) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["environment"] = {
      {"path", report.environment}, {"python", report.python}, {"program", report.program}};
  json["orders"] = Json::array();
  for (const Order& order : report.orders)
    json["orders"].push_back(
        {{"imports", order.imports}, {"verdict", order.verdict}, {"findings", order.findings}});
  json["findings"] = Json::array();
  for (size_t i = 0; i < report.findings.size(); i++)
    json["findings"].push_back({{"id", report.findings[i].id},
                                {"code", report.findings[i].code},
                                {"severity", severity_name(report.findings[i].severity)},
                                {"headline", report.findings[i].headline},
                                {"repairable", report.finding_classes[i]}});
  json["repairs"] = Json::array();
  for (const RepairRow& row : report.repairs) json["repairs"].push_back(to_json(row));
  json["unknowns"] = report.unknowns;
  json["simulations"] = report.simulations;
  // Paths may hold any bytes; what is not UTF-8 is replaced.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace cohabit::report
