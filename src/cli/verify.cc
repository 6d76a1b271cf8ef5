// cohabit verify: predict each order from the files, run it in a child process, compare.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "actions/verify.h"
#include "base/read_file.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/examine.h"
#include "repair/repair.h"

namespace cohabit {
namespace {

using Json = nlohmann::ordered_json;

struct VerifyOptions {
  std::string environment, imports, with, repair;
  std::string format = "full";
  VerifyLimits limits;
};

struct Row {
  std::vector<std::string> imports;
  VerifiedRun run;
  std::string predicted;  // sound, unsound, unknown
  // A clash that is predicted need not show in one run of a small computation; a crash that is not
  // predicted is a wrong prediction.
  bool agrees() const { return (predicted == "unsound") == (run.outcome != Outcome::kOk); }
};

Result<Repair> read_repair(const std::string& path) {
  if (path.empty()) return Repair{};
  auto text = read_file(path);
  if (!text) return tl::unexpected<Error>(text.error());
  auto repair = parse_rules(*text);
  if (!repair) return fail(fmt::format("{}: {}", path, repair.error().message));
  return repair;
}

std::string predict(World& world, const std::vector<std::string>& imports, const Repair& repair) {
  Sequence sequence = plan_sequence(world, imports, own_variables(""));
  sequence.trace = apply(repair, std::move(sequence.trace));
  report::Report report;
  if (!examine_sequence(world, sequence, report)) return "unknown";
  return report.orders.empty() ? "unknown" : report.orders.front().verdict;
}

Result<std::vector<std::vector<std::string>>> orders_asked(const VerifyOptions& options,
                                                           const World& world) {
  auto imports = read_module_list(options.imports);
  if (!imports) return tl::unexpected<Error>(imports.error());
  if (!imports->empty()) return std::vector<std::vector<std::string>>{*imports};
  auto with = read_module_list(options.with);
  if (!with) return tl::unexpected<Error>(with.error());
  return orders_of(with->empty() ? find_frameworks(world) : *with);
}

std::string full(const std::vector<Row>& rows) {
  std::string text;
  for (const Row& row : rows) {
    text += fmt::format("import {}: {} ({:.1f} s), predicted {}{}\n", fmt::join(row.imports, ", "),
                        outcome_name(row.run.outcome), row.run.seconds, row.predicted,
                        row.agrees() ? "" : ": they differ");
    if (!row.run.detail.empty()) text += fmt::format("    {}\n", row.run.detail);
  }
  return text;
}

std::string json(const World& world, const std::vector<Row>& rows) {
  Json json;
  json["schema_version"] = 1;
  json["environment"] = {{"path", world.python->prefix},
                         {"python", world.python->version},
                         {"program", world.python->executable}};
  json["runs"] = Json::array();
  for (const Row& row : rows) {
    Json versions = Json::object();
    for (const auto& [module, version] : row.run.versions) versions[module] = version;
    json["runs"].push_back({{"imports", row.imports},
                            {"outcome", outcome_name(row.run.outcome)},
                            {"detail", row.run.detail},
                            {"predicted", row.predicted},
                            {"agrees", row.agrees()},
                            {"seconds", row.run.seconds},
                            {"versions", versions}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<int> verify(const VerifyOptions& options) {
  if (options.format != "full" && options.format != "json")
    return fail("--format cannot be " + options.format + "; it is one of full, json");
  const auto repair = read_repair(options.repair);
  if (!repair) return tl::unexpected<Error>(repair.error());
  const Tree tree("");
  World world(tree);
  if (auto found = find_environment(world, options.environment); !found)
    return tl::unexpected<Error>(found.error());
  world.machine = read_machine(tree, world.python->elf_machine);
  const auto orders = orders_asked(options, world);
  if (!orders) return tl::unexpected<Error>(orders.error());
  Variables environment;
  for (const auto& entry : own_variables("")) environment.push_back(entry);
  const auto changes = launch_variables(*repair, environment);
  if (!changes) return tl::unexpected<Error>(changes.error());

  std::vector<Row> rows;
  for (const auto& imports : *orders) {
    fmt::print(stderr, "verifying {} of {}: import {}\n", rows.size() + 1, orders->size(),
               fmt::join(imports, ", "));
    auto run = verify_imports(world.python->executable, imports, *changes, options.limits);
    if (!run) return tl::unexpected<Error>(run.error());
    rows.push_back({imports, std::move(*run), predict(world, imports, *repair)});
  }
  const std::string text = options.format == "json" ? json(world, rows) : full(rows);
  if (auto done = print_report(text); !done) return tl::unexpected<Error>(done.error());
  return std::all_of(rows.begin(), rows.end(),
                     [](const Row& row) { return row.run.outcome == Outcome::kOk; })
             ? 0
             : 1;
}

}  // namespace

void add_verify_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* command = app.add_subcommand(
      "verify", "Really import and compute, each order in a child process, beside the prediction");
  command->footer("Exit code: 0 every run is ok, 1 some are not, 2 Cohabit failed.");
  command->add_option(
      "environment", options->environment,
      "A venv, conda or other prefix, or its interpreter (default: the active one)");
  command->add_option("--imports", options->imports, "Run this order only: a,b");
  command->add_option("--with", options->with,
                      "Run each of these alone and every pair in both orders: a,b (default: the "
                      "frameworks that are there)");
  command->add_option("--repair", options->repair,
                      "Start the children with this repair, a file of `cohabit fix --write`");
  command->add_option("--timeout", options->limits.seconds, "Seconds for one run")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 86400.0));
  command->add_option("--memory", options->limits.megabytes,
                      "Megabytes of private memory for one run (default: no limit)");
  command->add_option("--format", options->format, "full or json")->capture_default_str();
  command->callback([options, &exit_code] { exit_code = exit_code_of(verify(*options)); });
}

}  // namespace cohabit
