#include "cli/kept_environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "actions/locks/refetch.h"
#include "actions/snapshots/take.h"
#include "base/addresses.h"
#include "base/paths.h"
#include "base/say.h"
#include "cli/arguments.h"
#include "cli/examine.h"
#include "cli/gpu_options.h"
#include "cli/progress.h"
#include "facts/host/mounts.h"
#include "findings/copies.h"
#include "findings/environment.h"
#include "findings/fingerprint.h"
#include "report/printable.h"

namespace cohabit {
namespace {

// They change from shell to shell and mean nothing to a framework.
const std::set<std::string, std::less<>> kPassing = {"_",       "PWD",   "OLDPWD",  "SHLVL",
                                                     "COLUMNS", "LINES", "WINDOWID"};

std::vector<SnapshotVariable> hashed_variables(const std::string& salt) {
  constexpr size_t kDigits = 16;
  std::vector<SnapshotVariable> result;
  for (const auto& [name, value] : own_variables("")) {
    if (kPassing.contains(name) || name.starts_with("COHABIT_")) continue;
    const std::string text = fmt::format("{}\n{}={}", salt, name, value);
    result.push_back({name, hexadecimal(sha256(Bytes(text))).substr(0, kDigits)});
  }
  return result;
}

}  // namespace

Result<KeptEnvironment> find_kept_environment(const std::string& place) {
  const Tree tree("");
  auto python = find_interpreter(tree, place);
  if (!python) return tl::unexpected<Error>(python.error());
  const auto prefix = tree.real_path(python->prefix);
  if (!prefix) return fail(fmt::format("{} is not there", python->prefix));
  if (*prefix == "/" || *prefix == "/usr")
    return fail(
        fmt::format("{} is the Python of the system, whose packages belong to its package "
                    "manager: make a venv, or name one with --env",
                    python->executable));
  if (!python->found_by.empty())
    say("environment: {} (found by {})\n", python->prefix, python->found_by);
  KeptEnvironment result;
  result.prefix = *prefix;
  result.distributions = Distributions::read(tree, *python);
  result.claims = FileClaims::read(tree, result.distributions, result.prefix);
  result.python = std::move(*python);
  return result;
}

Result<void> read_again(KeptEnvironment& environment) {
  auto now = find_kept_environment(environment.python.executable);
  if (!now) return tl::unexpected<Error>(now.error());
  environment = std::move(*now);
  return {};
}

namespace {

// The site directories that are the environment's by their path.
std::vector<std::string> own_sites(const KeptEnvironment& environment) {
  std::vector<std::string> own;
  for (const std::string& site : environment.python.site_directories)
    if (is_below(site, environment.python.prefix) || is_below(site, environment.prefix))
      own.push_back(site);
  return own;
}

// Files are put back by renaming, which does not reach into another mount; and what lies behind a
// link that leads out of the environment is not the environment's.
Result<void> check_can_be_kept(const KeptEnvironment& environment) {
  const Tree tree("");
  const std::vector<std::string> mounts = mount_points_below(environment.prefix);
  for (const std::string& site : own_sites(environment)) {
    const auto real = tree.real_path(site);
    if (!real) continue;
    if (!is_below(*real, environment.prefix))
      return fail(fmt::format(
          "{} leads to {}, out of the environment {}: what is installed there cannot be kept "
          "and put back. Have the packages in the environment itself",
          site, *real, environment.prefix));
    for (const std::string& mount : mounts)
      if (mount == *real || is_below(mount, *real) || is_below(*real, mount))
        return fail(fmt::format(
            "{} is a mount of its own in the environment {}: what is there cannot be kept and put "
            "back together with the rest. Unmount it, or have all of the environment in one mount",
            mount, environment.prefix));
  }
  return {};
}

// Of packages whose directory is a link to elsewhere.
void tell_links_out(const KeptEnvironment& environment) {
  const Tree tree("");
  std::vector<std::string> out;
  for (const std::string& site : own_sites(environment))
    for (const std::string& name : tree.list(site)) {
      const std::string path = fmt::format("{}/{}", site, name);
      const auto status = tree.read_link(path) ? tree.stat(path) : tl::make_unexpected(ENOENT);
      const auto real = status && status->is_directory() ? tree.real_path(path) : std::nullopt;
      if (real && !is_below(*real, environment.prefix)) out.push_back(path);
    }
  if (!out.empty())
    say("of what lies outside of the environment only the links are kept: {}\n",
        report::printable(list_some(out)));
}

}  // namespace

Result<Store> open_store(KeptEnvironment& environment, Store::Access access, Lost lost) {
  disk::take_limits_as_failures();
  if (access == Store::Access::kChange) {
    if (auto good = check_can_be_kept(environment); !good)
      return tl::unexpected<Error>(good.error());
    tell_links_out(environment);
  }
  {
    auto store = Store::open(environment.prefix, access);
    if (!store || !store->exists()) return store;
    if (store->read_journal().action == Journal::Action::kNothing) {
      if (access == Store::Access::kChange)
        if (auto cleared = store->clear_stage(); !cleared)
          return tl::unexpected<Error>(cleared.error());
      return store;
    }
  }
  auto store = open_and_complete(environment, environment.prefix, lost);
  if (!store) return store;
  // What was read lay between the two.
  if (auto done = read_again(environment); !done) return tl::unexpected<Error>(done.error());
  return store;
}

Result<Store> open_and_complete(const KeptEnvironment& environment, const std::string& root,
                                Lost lost) {
  auto store = Store::open(root, Store::Access::kChange);
  if (!store) return store;
  const auto done = complete_interrupted(*store, environment.claims, refetch_of(environment), lost);
  if (!done) return tl::unexpected<Error>(done.error());
  if (!done->empty()) say("{}\n", *done);
  return store;
}

bool is_interrupted(const std::string& prefix) {
  const auto store = Store::open(prefix, Store::Access::kRead);
  return store && store->exists() && store->read_journal().action != Journal::Action::kNothing;
}

std::string halfway_changed(const std::string& prefix) {
  const auto real = Tree("").real_path(prefix);
  if (!real) return "";
  const auto store = Store::open(*real, Store::Access::kRead);
  if (!store) return store.error().message;
  if (!store->exists()) return "";
  const Journal journal = store->read_journal();
  const std::string what = journal.action == Journal::Action::kRestore
                               ? "a restore of " + journal.snapshot
                           : journal.action == Journal::Action::kInstall
                               ? fmt::format("`{}`", without_credentials(journal.command))
                           : journal.action == Journal::Action::kClean ? "a clean"
                                                                       : "";
  if (what.empty()) return "";
  return report::printable(fmt::format(
      "{} was interrupted in {}, which may be half changed: `cohabit restore --env {}` completes "
      "or takes back what was begun, with --abandon it stays as it is",
      what, prefix, shell_word(prefix)));
}

Result<void> check_whole(const std::string& prefix) {
  if (std::string halfway = halfway_changed(prefix); !halfway.empty())
    return fail(std::move(halfway));
  return {};
}

std::string restore_command_of(const std::string& prefix, const std::string& name) {
  return fmt::format("cohabit restore {} --env {}", shell_word(name), shell_word(prefix));
}

Refetch refetch_of(const KeptEnvironment& environment) {
  return [&environment](Store& store, const Snapshot& wanted, std::vector<SpoiledFile> spoiled) {
    const auto installer = locks::usual_installer(environment.python, environment.distributions);
    if (!installer) return spoiled;
    locks::Refetched done =
        locks::fetch_again(store, wanted, *installer, environment.python, std::move(spoiled));
    for (const std::string& file : done.fetched)
      say("written in place since, and fetched again: {}\n", report::printable(file));
    return std::move(done.left);
  };
}

Result<Examination> examine_kept(const KeptEnvironment& environment, bool orders) {
  const Tree tree("");
  World world(tree);
  if (auto found = find_environment(world, environment.python.executable); !found)
    return tl::unexpected<Error>(found.error());
  world.machine = read_machine(tree, world.python->elf_machine, "", world.python->elf_interpreter);
  report::Report report;
  EnvironmentOptions about;
  about.variables = own_variables("");
  if (auto gpu = gpu_host_of(tree, world.machine, about.variables, {}))
    about.gpu = std::move(*gpu);
  else
    return tl::unexpected<Error>(gpu.error());
  examine_environment(world, report, std::move(about));
  if (orders) {
    Progress progress;
    examine_orders(world, {find_frameworks(world), {}}, own_variables(""), report, progress);
  }
  report = report::without_secrets(std::move(report), own_variables(""));
  Examination result;
  result.of = orders ? "orders" : "files";
  for (const report::Order& order : report.orders)
    result.verdicts[fmt::format("{}", fmt::join(order.imports, ", "))] = order.verdict;
  for (const Finding& finding : report.findings)
    result.fingerprints.push_back(fingerprint(finding, world.python->prefix));
  result.findings = std::move(report.findings);
  return result;
}

std::vector<SnapshotPackage> packages_of(const KeptEnvironment& environment) {
  std::vector<SnapshotPackage> packages;
  for (const Distribution* one : without_repeats(environment.distributions, environment.python))
    packages.push_back({one->name, one->version});
  std::sort(packages.begin(), packages.end());
  return packages;
}

SnapshotNotes notes_of(const KeptEnvironment& environment, const Examination& examination,
                       const std::string& salt) {
  SnapshotNotes notes;
  notes.packages = packages_of(environment);
  notes.variables = hashed_variables(salt);
  notes.findings_of = examination.of;
  for (size_t i = 0; i < examination.findings.size(); i++) {
    const Finding& finding = examination.findings[i];
    notes.findings.push_back({examination.fingerprints[i],
                              std::string(severity_name(finding.severity)), finding.code,
                              finding.headline});
  }
  return notes;
}

}  // namespace cohabit
