#include "report/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/addresses.h"
#include "report/painter.h"
#include "report/printable.h"

namespace cohabit::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShown = 10;
constexpr size_t kExamplesShown = 1;

// Those that are most likely to break something stand first.
std::vector<ExpectedChange> by_weight(std::vector<ExpectedChange> changes) {
  const auto weight = [](const ExpectedChange& change) {
    static constexpr std::array kOrder = {ExpectedKind::kDowngraded, ExpectedKind::kRemoved,
                                          ExpectedKind::kUpgraded, ExpectedKind::kReinstalled,
                                          ExpectedKind::kAdded};
    return std::find(kOrder.begin(), kOrder.end(), change.kind) - kOrder.begin();
  };
  std::stable_sort(changes.begin(), changes.end(), [&](const auto& a, const auto& b) {
    return std::pair(weight(a), a.name) < std::pair(weight(b), b.name);
  });
  return changes;
}

std::string versions(const ExpectedChange& change) {
  if (change.from.empty() || change.kind == ExpectedKind::kReinstalled) return change.to;
  return change.to.empty() ? change.from : fmt::format("{} -> {}", change.from, change.to);
}

std::string draw_change(const ExpectedChange& change, const Painter& painter) {
  std::string kind = fmt::format("{:<11} ", kind_name(change.kind));
  if (change.kind == ExpectedKind::kDowngraded) kind = painter.paint("1;33", "DOWNGRADED ") + " ";
  const std::string what = fmt::format("{} {}", change.name, versions(change));
  const std::string why =
      change.because.empty() ? "" : fmt::format("{}", fmt::join(change.because, " -> "));
  return "  " + kind + printable(what) + (why.empty() ? "" : printable("   (" + why + ")")) + "\n";
}

std::string draw_changes(const Check& check, const Painter& painter) {
  if (check.changes.empty())
    return fmt::format("{} would change nothing in {}\n", check.installer,
                       printable(check.report.environment));
  const size_t count = check.changes.size();
  std::string text = fmt::format("{} would change {} distribution{} in {}:\n", check.installer,
                                 count, count == 1 ? "" : "s", printable(check.report.environment));
  size_t added = 0;
  for (const ExpectedChange& change : by_weight(check.changes)) {
    if (change.kind == ExpectedKind::kAdded && added++ >= kShown) continue;
    text += draw_change(change, painter);
  }
  if (added > kShown)
    text += fmt::format("    and {} more added (all are in --format json)\n", added - kShown);
  return text;
}

std::string draw_overwrite(const Overwrite& one) {
  std::string text = fmt::format("    {} and {}: {} path{}, {} different", one.first, one.second,
                                 one.count, one.count == 1 ? "" : "s", one.different);
  if (one.different > 0)
    text += one.winner.empty() ? "; undecided whose stay"
                               : fmt::format("; those of {} stay", one.winner);
  for (size_t i = 0; i < std::min(kExamplesShown, one.examples.size()); i++)
    text += fmt::format("; e.g. {}", one.examples[i]);
  return printable(text) + "\n";
}

std::string draw_overwrites(const Check& check) {
  if (check.claimed_twice == 0) return "";
  std::string text =
      fmt::format("  {} path{} claimed twice, {} of them with different content\n",
                  check.claimed_twice, check.claimed_twice == 1 ? "" : "s", check.different);
  size_t differing = 0;
  for (const Overwrite& one : check.overwrites)
    if (one.different > 0 && differing++ < kShown) text += draw_overwrite(one);
  if (differing > kShown) text += fmt::format("    and {} more pairs\n", differing - kShown);
  // An empty nvidia/__init__.py is claimed by every two of twenty distributions.
  if (const size_t alike = check.overwrites.size() - differing; alike > 0)
    text += fmt::format("    {}{} pair{} with the same content (in --format json)\n",
                        differing > 0 ? "and " : "", alike, alike == 1 ? "" : "s");
  return text;
}

std::string draw_unasked(const Check& check, const Painter& painter) {
  std::string text;
  for (const ExpectedChange& change : check.changes)
    if (change.replaces_framework)
      text += painter.paint("1;33", printable(unasked(change))) + "; `cohabit guard` refuses it\n";
  return text;
}

std::string size_text(uint64_t bytes) {
  if (bytes < 1'000'000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3);
  return fmt::format("{:.2f} MB", static_cast<double>(bytes) / 1e6);
}

std::string draw_cost(const Check& check) {
  if (check.bytes_of_wheels == 0) return "";
  const double share =
      100.0 * static_cast<double>(check.bytes_fetched) / static_cast<double>(check.bytes_of_wheels);
  return fmt::format("  fetched {} of {} of wheels ({:.3f} %)\n", size_text(check.bytes_fetched),
                     size_text(check.bytes_of_wheels), share);
}

Json to_json(const ExpectedChange& change) {
  const auto version = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  return {{"name", change.name},       {"from", version(change.from)},
          {"to", version(change.to)},  {"kind", kind_name(change.kind)},
          {"because", change.because}, {"replaces_framework", change.replaces_framework}};
}

Json to_json(const Overwrite& one) {
  return {{"first", one.first},
          {"second", one.second},
          {"count", one.count},
          {"different", one.different},
          {"examples", one.examples},
          {"winner", one.winner.empty() ? Json("undecided") : Json(one.winner)}};
}

}  // namespace

std::string unasked(const ExpectedChange& change) {
  return fmt::format("{} {} -> {} ({}), which was not asked for: name it too if it is wanted",
                     change.name, change.from, change.to.empty() ? "removed" : change.to,
                     fmt::join(change.because, " -> "));
}

Check without_secrets(Check check, const std::map<std::string, std::string>& variables) {
  check.report = without_secrets(std::move(check.report), variables);
  for (ExpectedChange& change : check.changes)
    for (std::string& text : change.because) text = without_credentials(std::move(text));
  return check;
}

constexpr std::string_view kNothing =
    "nothing would break as far as metadata and lists of files tell; --deep looks at the code\n";
constexpr std::string_view kNothingDeep =
    "nothing would break as far as files tell; whether all of it runs, guard tries after the "
    "install\n";

std::string full(const Check& check, bool colour) {
  const std::string findings = full(check.report, colour);
  const Painter painter(colour);
  return draw_changes(check, painter) + draw_overwrites(check) + draw_cost(check) +
         draw_unasked(check, painter) +
         (findings.empty() ? std::string(check.is_deep ? kNothingDeep : kNothing)
                           : "\n" + findings);
}

std::string concise(const Check& check) {
  std::string text;
  for (const ExpectedChange& change : by_weight(check.changes))
    text +=
        printable(fmt::format("{}: {} {}", kind_name(change.kind), change.name, versions(change))) +
        "\n";
  return text + concise(check.report);
}

std::string json(const Check& check) {
  // Findings are as doctor's.
  Json json = Json::parse(report::json(check.report));
  json.erase("orders");
  json.erase("machine");
  json["installer"] = check.installer;
  json["changes"] = Json::array();
  for (const ExpectedChange& change : check.changes) json["changes"].push_back(to_json(change));
  json["overwrites"] = Json::array();
  for (const Overwrite& one : check.overwrites) json["overwrites"].push_back(to_json(one));
  json["claimed_twice"] = {{"count", check.claimed_twice}, {"different", check.different}};
  json["bytes_fetched"] = check.bytes_fetched;
  json["bytes_of_wheels"] = check.bytes_of_wheels;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace cohabit::report
