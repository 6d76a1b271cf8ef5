// cohabit export: what is installed; which wheels that are; as a file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "actions/check/expected_environment.h"
#include "actions/locks/lock_installed.h"
#include "actions/locks/pylock.h"
#include "base/paths.h"
#include "base/say.h"
#include "base/write_file.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/examine.h"
#include "cli/place_options.h"
#include "report/printable.h"

namespace cohabit {
namespace {

struct ExportOptions {
  std::string environment;
  std::string format = "pylock", out = "-";
  bool full = false;
  PlaceOptions places;
};

Result<std::string> text_of(const ExportOptions& options, const locks::Lock& lock,
                            const std::string& prefix) {
  if (options.format == "pylock") return locks::format_pylock(lock);
  if (options.format == "requirements") return locks::format_requirements(lock);
  return locks::format_environment_yml(lock, last_part(prefix));
}

void tell(const locks::Lock& lock, const std::string& format) {
  constexpr size_t kShown = 20;
  size_t shown = 0;
  for (const locks::Unsaid& one : lock.unsaid)
    if (shown++ < kShown)
      say("not said: {} {}: {}\n", report::printable(one.name), report::printable(one.version),
          report::printable(one.why));
  for (const locks::ChangedFile& one : lock.changed)
    if (shown++ < kShown)
      say("not as in the wheel of {}: {}: {}\n", report::printable(one.distribution),
          report::printable(one.path), one.why);
  if (shown > kShown) say("and {} more\n", shown - kShown);
  if (format != "environment.yml" && !lock.conda.empty())
    say("not said: {} conda packages: --format environment.yml has them\n", lock.conda.size());
}

Result<int> run_export(const ExportOptions& options) {
  if (options.format != "pylock" && options.format != "requirements" &&
      options.format != "environment.yml")
    return fail(fmt::format("--format cannot be {}; it is pylock, requirements or environment.yml",
                            options.format));
  const Tree tree("");
  World world(tree);
  if (auto found = choose_whole_environment(world, options.environment); !found)
    return tl::unexpected<Error>(found.error());
  const auto site = check::find_site(*world.python);
  if (!site) return tl::unexpected<Error>(site.error());
  auto installer = locks::usual_installer(*world.python, world.distributions);
  if (!installer) return tl::unexpected<Error>(installer.error());
  if (const auto cost = check::cost_of_asking(*installer, world.distributions); !cost.empty())
    say("{}\n", cost);
  const locks::Question question{*installer, &*world.python, check::layout_of(*world.python, *site),
                                 words_of(options.places, installer->tool)};
  locks::Lock lock = locks::lock_installed(question, world.distributions, world.python->prefix);
  lock.changed = locks::find_changed(world.distributions, options.full);
  const auto text = text_of(options, lock, world.python->prefix);
  if (!text) return tl::unexpected<Error>(text.error());
  if (auto written = write_file(options.out, *text); !written)
    return tl::unexpected<Error>(written.error());
  tell(lock, options.format);
  const bool has_conda = options.format != "environment.yml" && !lock.conda.empty();
  return lock.unsaid.empty() && lock.changed.empty() && !has_conda ? 0 : 1;
}

}  // namespace

void add_export_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command = app.add_subcommand(
      "export", "Write down what is installed, with the address and hash of every wheel");
  command->footer(
      "Example: cohabit export .venv --out pylock.toml\n"
      "The environment's own installer says where wheels are, with its own configuration; a wheel "
      "is named\nonly if its list of files is the installed one.\n"
      "Exit code: 0 all of it is said, 1 something is not (and named), 2 Cohabit failed.");
  command
      ->add_option(
          "environment", options->environment,
          "The environment (default: $VIRTUAL_ENV, .venv here, $CONDA_PREFIX, python in PATH)")
      ->check(refuse_empty);
  command->add_option("--format", options->format, "pylock, requirements or environment.yml")
      ->capture_default_str();
  command->add_option("-o,--out", options->out, "The file to write (default: standard output)");
  command->add_flag("--full", options->full, "Read every installed file to see whether it changed");
  add_place_options(*command, options->places);
  command->callback([options, &exit_code] { exit_code = exit_code_of(run_export(*options)); });
}

}  // namespace cohabit
