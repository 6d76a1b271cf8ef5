#include "report/leftovers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "findings/environment.h"
#include "report/painter.h"
#include "report/printable.h"
#include "report/snapshots.h"

namespace cohabit::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;
constexpr size_t kShownPaths = 3;

void append(const Leftover& leftover, bool goes, const Painter& painter, std::string& text) {
  text += fmt::format("{} {}: {} ({}, {})\n", goes ? '-' : ' ',
                      painter.bold(leftover_name(leftover.kind)), printable(leftover.what),
                      count_of(leftover.files, "file"), size_text(leftover.bytes));
  text += fmt::format("    {}\n", printable(leftover.why));
  for (size_t i = 0; i < leftover.paths.size() && i < kShownPaths; i++)
    text += fmt::format("    {}\n", printable(leftover.paths[i]));
  if (leftover.paths.size() > kShownPaths)
    text += fmt::format("    and {} more\n", leftover.paths.size() - kShownPaths);
}

std::string_view option_of(LeftoverKind kind) {
  if (kind == LeftoverKind::kUnclaimed) return "--unclaimed";
  if (kind == LeftoverKind::kUnused) return "--unused";
  return kind == LeftoverKind::kUserSite ? "--user-site" : "--caches";
}

}  // namespace

std::string full(const CleanReport& report, bool colour) {
  const Painter painter(colour);
  std::string text;
  uint64_t bytes = 0;
  size_t going = 0;
  std::set<std::string_view> options;
  for (const Leftover& leftover : report.leftovers) {
    const bool goes = report.wanted.contains(leftover.kind);
    append(leftover, goes, painter, text);
    if (!goes) options.insert(option_of(leftover.kind));
    if (!goes) continue;
    going++;
    bytes += leftover.bytes;
  }
  if (report.leftovers.empty()) return "Nothing is left over.\n";
  text += "\n";
  if (!report.cleaning.empty())
    text += fmt::format(
        "{} put away ({}): `cohabit clean --undo {} --env {}` puts back, with --forget for --undo "
        "it "
        "frees the space\n",
        count_of(going, "leftover"), size_text(bytes), report.cleaning,
        shell_word(report.environment));
  else if (going > 0)
    text += fmt::format("{} ({}) would be put away, with - in front; nothing was changed\n",
                        count_of(going, "leftover"), size_text(bytes));
  if (!options.empty())
    text += fmt::format("the others may be wanted by somebody: {} puts them away too\n",
                        fmt::join(options, ", "));
  return text;
}

std::string json(const CleanReport& report) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["environment"] = {{"path", report.environment}, {"python", report.python}};
  json["cleaning"] = report.cleaning.empty() ? Json() : Json(report.cleaning);
  json["leftovers"] = Json::array();
  for (const Leftover& leftover : report.leftovers)
    json["leftovers"].push_back({{"kind", leftover_name(leftover.kind)},
                                 {"what", leftover.what},
                                 {"why", leftover.why},
                                 {"paths", leftover.paths},
                                 {"files", leftover.files},
                                 {"bytes", leftover.bytes},
                                 {"goes", report.wanted.contains(leftover.kind)}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace cohabit::report
