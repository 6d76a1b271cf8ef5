#include "cli/verify_runs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <optional>
#include <thread>

#include "base/say.h"
#include "base/together.h"
#include "cli/arguments.h"
#include "cli/verify_cache.h"
#include "facts/host/memory.h"

namespace cohabit {
namespace {

// As many as were asked for, but not more than memory is there for.
unsigned jobs_of(const VerifyRequest& request, const World& world) {
  constexpr uint64_t kOfOne = 3072;  // MiB: two frameworks with their computations take 1 to 2 GiB
  const uint64_t one = (request.limits.megabytes ? request.limits.megabytes : kOfOne) << 20;
  const unsigned asked = request.jobs ? request.jobs : static_cast<unsigned>(processors());
  const uint64_t available = available_memory(world.tree);
  const auto fitting = static_cast<unsigned>(std::clamp<uint64_t>(available / one, 1, asked));
  if (available == 0 || fitting == asked) return asked;
  say("running {} at a time, not {}: {} MiB of memory are there for {} MiB each\n", fitting, asked,
      available >> 20, one >> 20);
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
      say("verifying {} of {}: {}\n", at + 1, rows_.size(), statement_of(row.imports));
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
      say("{}: nothing has changed since it was ok; not run\n", statement_of(row.imports));
}

}  // namespace

Result<std::vector<VerifiedRow>> verify_orders(const World& world, const Repair& repair,
                                               const std::vector<std::vector<std::string>>& orders,
                                               const VerifyRequest& request,
                                               const std::function<void(VerifiedRow&)>& meanwhile) {
  const auto variables = own_variables("");
  const Variables environment(variables.begin(), variables.end());
  auto changes = launch_variables(repair, environment);
  if (!changes) return tl::unexpected<Error>(changes.error());
  if (!request.leaves_bytecode) changes->push_back({"PYTHONDONTWRITEBYTECODE", "1", ""});
  std::vector<VerifiedRow> rows(orders.size());
  for (size_t i = 0; i < orders.size(); i++) rows[i].imports = orders[i];
  std::optional<VerifyCache> cache;
  if (request.cached) cache.emplace(world, repair);
  take_kept(cache, rows);
  Runs runs(world, *changes, request.limits, rows);
  runs.start(jobs_of(request, world));
  if (meanwhile)
    for (VerifiedRow& row : rows)
      if (!row.cached) meanwhile(row);
  if (auto done = runs.wait(); !done) return tl::unexpected<Error>(done.error());
  if (cache) cache->keep(rows);
  return rows;
}

}  // namespace cohabit
