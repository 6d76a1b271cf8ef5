// cohabit verify: predict each order from the files, run it in a child process, compare.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "actions/verify.h"
#include "base/read_file.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/examine.h"
#include "cli/verified_row.h"
#include "cli/verify_cache.h"
#include "facts/host/memory.h"
#include "repair/repair.h"

namespace cohabit {
namespace {

struct VerifyOptions {
  std::string environment, imports, with, repair;
  std::string format = "full";
  VerifyLimits limits;
  unsigned jobs = 1;
  bool cached = false;
  bool ocr = false;
};

Result<Repair> read_repair(const std::string& path) {
  if (path.empty()) return Repair{};
  auto text = read_file(path);
  if (!text) return tl::unexpected<Error>(text.error());
  auto repair = parse_rules(*text);
  if (!repair) return fail(fmt::format("{}: {}", path, repair.error().message));
  return repair;
}

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
  if (!imports->empty()) return std::vector<std::vector<std::string>>{*imports};
  auto with = read_module_list(options.with);
  if (!with) return tl::unexpected<Error>(with.error());
  if (options.ocr) return orders_of_ocr(world);
  return orders_of(with->empty() ? find_frameworks(world) : *with);
}

// As many as were asked for, but not more than memory is there for.
unsigned jobs_of(const VerifyOptions& options, const World& world) {
  constexpr uint64_t kOfOne = 3072;  // MiB: two frameworks with their computations take 1 to 2 GiB
  const uint64_t one = (options.limits.megabytes ? options.limits.megabytes : kOfOne) << 20;
  const unsigned asked =
      options.jobs ? options.jobs : std::max(1U, std::thread::hardware_concurrency());
  const uint64_t available = available_memory(world.tree);
  const auto fitting = static_cast<unsigned>(std::clamp<uint64_t>(available / one, 1, asked));
  if (available == 0 || fitting == asked) return asked;
  fmt::print(stderr, "running {} at a time, not {}: {} MiB of memory are there for {} MiB each\n",
             fitting, asked, available >> 20, one >> 20);
  return fitting;
}

// The children of several orders, a few at a time; each is waited for by a thread of its own.
class Runs {
 public:
  Runs(const World& world, const std::vector<VariableChange>& changes, const VerifyLimits& limits,
       std::vector<VerifiedRow>& rows)
      : python_(world.python->executable), changes_(changes), limits_(limits), rows_(rows) {}

  void start(unsigned jobs) {
    for (unsigned i = 0; i < std::min<size_t>(jobs, rows_.size()); i++)
      threads_.emplace_back([this] { work(); });
  }
  // The first error of a child that could not be run.
  Result<void> wait() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    if (error_) return tl::unexpected<Error>(*error_);
    return {};
  }
  ~Runs() { (void)wait(); }
  Runs(const Runs&) = delete;

 private:
  void work() {
    for (size_t at = next_++; at < rows_.size(); at = next_++) {
      VerifiedRow& row = rows_[at];
      if (row.cached) continue;
      fmt::print(stderr, "verifying {} of {}: import {}\n", at + 1, rows_.size(),
                 fmt::join(row.imports, ", "));
      auto run = verify_imports(python_, row.imports, changes_, limits_);
      if (run) {
        row.run = std::move(*run);
        continue;
      }
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = run.error();
    }
  }

  const std::string python_;
  const std::vector<VariableChange>& changes_;
  const VerifyLimits& limits_;
  std::vector<VerifiedRow>& rows_;
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  std::optional<Error> error_;
  std::vector<std::thread> threads_;
};

// Those that have not changed since they were ok need no run.
void take_kept(const std::optional<VerifyCache>& cache, std::vector<VerifiedRow>& rows) {
  if (!cache) return;
  for (VerifiedRow& row : rows)
    if (cache->find(row))
      fmt::print(stderr, "import {}: nothing has changed since it was ok; not run\n",
                 fmt::join(row.imports, ", "));
}

Result<std::vector<VerifiedRow>> verify_orders(
    const VerifyOptions& options, World& world, const Repair& repair,
    const std::vector<std::vector<std::string>>& orders) {
  const auto variables = own_variables("");
  const Variables environment(variables.begin(), variables.end());
  const auto changes = launch_variables(repair, environment);
  if (!changes) return tl::unexpected<Error>(changes.error());
  std::vector<VerifiedRow> rows(orders.size());
  for (size_t i = 0; i < orders.size(); i++) rows[i].imports = orders[i];
  std::optional<VerifyCache> cache;
  if (options.cached) cache.emplace(world, repair);
  take_kept(cache, rows);
  Runs runs(world, *changes, options.limits, rows);
  runs.start(jobs_of(options, world));
  for (VerifiedRow& row : rows)
    if (!row.cached) predict(world, repair, row);
  if (auto done = runs.wait(); !done) return tl::unexpected<Error>(done.error());
  for (VerifiedRow& row : rows) find_explanation(row);
  if (cache) cache->keep(rows);
  return rows;
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
  const auto rows = verify_orders(options, world, *repair, *orders);
  if (!rows) return tl::unexpected<Error>(rows.error());
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
  command->add_option(
      "environment", options->environment,
      "A venv, conda or other prefix, or its interpreter (default: the active one)");
  command->add_option("--imports", options->imports, "Run this order only: a,b");
  command->add_option("--with", options->with,
                      "Run each of these alone and every pair in both orders: a,b (default: the "
                      "frameworks that are there)");
  command
      ->add_flag(
          "--ocr", options->ocr,
          "Read a drawn text with PP-OCR models (rapidocr-paddle, rapidocr-onnxruntime), alone "
          "and beside torch in both orders")
      ->excludes("--imports")
      ->excludes("--with");
  command->add_option("--repair", options->repair,
                      "Start the children with this repair, a file of `cohabit fix --write`");
  command->add_option("--timeout", options->limits.seconds, "Seconds for one run")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 86400.0));
  command->add_option("--memory", options->limits.megabytes,
                      "Megabytes of private memory for one run (default: no limit)");
  command
      ->add_option("--jobs", options->jobs,
                   "Run so many children at a time, as far as memory is there for them; 0: as many "
                   "as processors")
      ->capture_default_str();
  command->add_flag("--cached", options->cached,
                    "Do not run again what was ok and has not changed: packages, Python, machine");
  command->add_option("--format", options->format, "full or json")->capture_default_str();
  command->callback([options, &exit_code] { exit_code = exit_code_of(verify(*options)); });
}

}  // namespace cohabit
