// cohabit clean: what installs have left behind is put away, and can be put back.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>

#include "actions/snapshots/cleaning.h"
#include "actions/snapshots/take.h"
#include "base/variables.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/kept_environment.h"
#include "findings/leftovers.h"
#include "findings/rule.h"
#include "report/leftovers.h"
#include "report/printable.h"

namespace cohabit {
namespace {

struct CleanOptions {
  std::string environment, undo, forget;
  std::string format = "full";
  bool dry_run = false, all = false, unused = false, unclaimed = false, user_site = false,
       caches = false;
};

constexpr const char* kLatest = "latest";

std::set<LeftoverKind> wanted_kinds(const CleanOptions& options) {
  std::set<LeftoverKind> wanted = certain_leftovers();
  if (options.all || options.unused) wanted.insert(LeftoverKind::kUnused);
  if (options.all || options.unclaimed) wanted.insert(LeftoverKind::kUnclaimed);
  if (options.all || options.user_site) wanted.insert(LeftoverKind::kUserSite);
  if (options.all || options.caches) wanted.insert(LeftoverKind::kCompileCache);
  return wanted;
}

// The directories in which something may have been put away.
std::vector<std::string> known_roots(const KeptEnvironment& environment,
                                     const std::vector<std::string>& caches) {
  std::vector<std::string> roots{environment.prefix};
  const Tree tree("");
  if (const auto site = tree.real_path(environment.python.user_site))
    if (!environment.python.user_site.empty()) roots.push_back(*site);
  for (const std::string& cache : caches)
    if (const auto real = tree.real_path(cache)) roots.push_back(*real);
  return roots;
}

// Whatever was interrupted, before anything is looked at.
Result<void> complete_all(KeptEnvironment& environment) {
  if (auto store = open_store(environment, Store::Access::kRead); !store)
    return tl::unexpected<Error>(store.error());
  for (const std::string& root : known_roots(environment, compile_caches(own_variables("")))) {
    if (root == environment.prefix || !is_interrupted(root)) continue;
    if (auto store = open_and_complete(environment, root); !store)
      return tl::unexpected<Error>(store.error());
    if (auto done = read_again(environment); !done) return done;
  }
  return {};
}

Result<std::string> choose_cleaning(const std::vector<std::string>& roots,
                                    const std::string& asked) {
  std::vector<std::string> names;
  for (const std::string& root : roots)
    for (const std::string& name : cleanings(root)) names.push_back(name);
  std::sort(names.begin(), names.end());
  if (names.empty()) return fail("nothing is put away: `cohabit clean` does that");
  if (asked == kLatest) return names.back();
  if (std::find(names.begin(), names.end(), asked) != names.end()) return asked;
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const auto near = nearest_name(asked, names);
  return fail(fmt::format("nothing was put away as {}{}; there are: {}", report::printable(asked),
                          near ? fmt::format(" (did you mean {}?)", *near) : "",
                          report::printable(fmt::format("{}", fmt::join(names, ", ")))));
}

using Change = Result<void> (*)(Store&, const std::string&);

// Puts back, or forgets, in all roots.
Result<int> change_cleaning(const CleanOptions& options, const KeptEnvironment& environment,
                            Change change, const std::string& asked, const char* done) {
  const auto roots = known_roots(environment, compile_caches(own_variables("")));
  const auto name = choose_cleaning(roots, asked);
  if (!name) return tl::unexpected<Error>(name.error());
  for (const std::string& root : roots) {
    const auto there = cleanings(root);
    if (std::find(there.begin(), there.end(), *name) == there.end()) continue;
    auto store = open_and_complete(environment, root);
    if (!store) return tl::unexpected<Error>(store.error());
    if (auto changed = change(*store, *name); !changed)
      return tl::unexpected<Error>(changed.error());
  }
  fmt::print(options.format == "json" ? stderr : stdout, "what {} had put away is {}\n", *name,
             done);
  return 0;
}

// One store at a time; what was put away before a failure goes back.
Result<std::string> put_all_away(const KeptEnvironment& environment,
                                 const report::CleanReport& report) {
  std::map<std::string, std::vector<std::string>> by_root;
  for (const Leftover& leftover : report.leftovers)
    if (report.wanted.contains(leftover.kind))
      for (const std::string& path : leftover.paths) by_root[leftover.root].push_back(path);
  if (by_root.empty()) return std::string();
  std::string name;
  for (const auto& [root, paths] : by_root) name = std::max(name, new_cleaning_name(root));
  std::vector<Store> done;
  for (const auto& [root, paths] : by_root) {
    auto store = open_and_complete(environment, root);
    auto put = store ? put_away(*store, name, paths) : tl::unexpected<Error>(store.error());
    if (!put) {
      for (Store& earlier : done) (void)put_back(earlier, name);
      return tl::unexpected<Error>(put.error());
    }
    done.push_back(std::move(*store));
  }
  return name;
}

Result<int> clean(const CleanOptions& options) {
  if (options.format != "full" && options.format != "json")
    return fail(fmt::format("--format cannot be {}; it is full or json", options.format));
  auto environment = find_kept_environment(options.environment);
  if (!environment) return tl::unexpected<Error>(environment.error());
  if (options.dry_run)
    for (const std::string& root : known_roots(*environment, compile_caches(own_variables(""))))
      if (auto whole = check_whole(root); !whole) return tl::unexpected<Error>(whole.error());
  if (auto completed = complete_all(*environment); !completed)
    return tl::unexpected<Error>(completed.error());
  if (!options.undo.empty())
    return change_cleaning(options, *environment, put_back, options.undo, "back");
  if (!options.forget.empty())
    return change_cleaning(options, *environment, forget_cleaning, options.forget, "gone");
  const Tree tree("");
  EnvironmentOptions about;
  about.variables = own_variables("");
  const EnvironmentCase examined(tree, environment->python, environment->distributions,
                                 std::move(about));
  report::CleanReport report;
  report.environment = environment->prefix;
  report.python = environment->python.version;
  report.wanted = wanted_kinds(options);
  auto found = find_leftovers(examined, environment->claims, environment->prefix, report.wanted);
  if (!found) return tl::unexpected<Error>(found.error());
  report.leftovers = std::move(*found);
  if (!options.dry_run) {
    auto name = put_all_away(*environment, report);
    if (!name) return tl::unexpected<Error>(name.error());
    report.cleaning = std::move(*name);
  }
  const std::string text =
      options.format == "json" ? report::json(report) : full(report, wants_colour());
  if (auto printed = print_report(text); !printed) return tl::unexpected<Error>(printed.error());
  return 0;
}

}  // namespace

void add_clean_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CleanOptions>();
  CLI::App* command = app.add_subcommand(
      "clean", "Put away what installs have left behind: it shadows, breaks or takes space");
  command->footer(
      "What is put away is in ENV/.cohabit/cleaned until it is put back or forgotten.\n"
      "Exit code: 0 done or nothing to do, 2 Cohabit failed.");
  command->add_option(
      "--env", options->environment,
      "A venv, conda or other prefix, or its interpreter (default: the active one)");
  command->add_flag("--dry-run", options->dry_run, "Say what would be put away, change nothing");
  command->add_flag(
      "--unused", options->unused,
      "Also NVIDIA's libraries that nothing here needs, though somebody installed them");
  command->add_flag("--unclaimed", options->unclaimed, "Also files that no RECORD lists");
  command->add_flag("--user-site", options->user_site,
                    "Also distributions in the user's site directory that win over those here");
  command->add_flag("--caches", options->caches,
                    "Also what was compiled before the framework was installed");
  command->add_flag("--all", options->all, "All of these");
  command->add_option("--format", options->format, "full or json")->capture_default_str();
  CLI::Option* undo =
      command->add_option("--undo", options->undo, "Put back what a clean has put away")
          ->expected(0, 1)
          ->default_str(kLatest);
  command->add_option("--forget", options->forget, "Remove for good what a clean has put away")
      ->expected(0, 1)
      ->default_str(kLatest)
      ->excludes(undo);
  command->callback([options, &exit_code] { exit_code = exit_code_of(clean(*options)); });
}

}  // namespace cohabit
