// cohabit kernel: a Jupyter kernel that starts an environment's ipykernel under `cohabit run`. The
// kernel is that process (run becomes it), so interrupts and the end reach it as ever; nothing is
// installed into the environment.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>

#include "actions/kernel_specs.h"
#include "base/paths.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/examine.h"
#include "cli/rules_file.h"
#include "facts/python/version.h"
#include "report/printable.h"

namespace cohabit {
namespace {

constexpr const char* kLauncher = "ipykernel_launcher";

struct KernelOptions {
  std::string environment, name, display_name, prefix, imports;
  std::string repair = "auto";
  bool user = false;
  bool dry_run = false;
};

Result<std::string> place_of(const KernelOptions& options) {
  if (options.user && !options.prefix.empty())
    return fail("--user and --prefix name two places: give one of them");
  return kernel_directory(own_variables(""), options.prefix);
}

// --repair as `cohabit run` takes it, from any directory.
Result<std::string> repair_argument(const std::string& repair) {
  if (repair == "auto" || repair == "none") return repair;
  if (auto rules = read_rules_file(repair); !rules) return tl::unexpected<Error>(rules.error());
  std::error_code error;
  return std::filesystem::absolute(repair, error).lexically_normal().string();
}

Result<void> check_has_kernel(const World& world) {
  python::Finder finder(world.tree, *world.python);
  if (finder.find_top_level(kLauncher)) return {};
  return fail(fmt::format(
      "{} has no ipykernel, without which it is no kernel of Jupyter; `{}`", world.python->prefix,
      installer_command(world.python->executable, world.distributions, "install", {"ipykernel"})));
}

// ipykernel has a debugger from 6 on.
bool has_debugger(const Distributions& distributions) {
  const Distribution* kernel = distributions.find("ipykernel");
  const auto version = kernel ? PythonVersion::parse(kernel->version) : std::nullopt;
  return version && !(*version < *PythonVersion::parse("6"));
}

// ENV/.venv says less than the directory that it is in.
std::string short_name(const std::string& prefix) {
  std::string name = last_part(prefix);
  const bool says_nothing = name == ".venv" || name == "venv" || name == "env";
  return says_nothing ? last_part(directory_of(prefix)) : name;
}

// Jupyter writes names in lower case, and so looks for them.
Result<std::string> read_name(const std::string& name) {
  std::string spelled = kernel_name_of(name);
  if (is_kernel_name(name) && !spelled.empty()) return spelled;
  return fail(
      fmt::format("{} cannot be the name of a kernel: letters, digits, \"-\", \".\" and \"_\" can "
                  "stand in it{}",
                  report::printable(name), spelled.empty() ? "" : "; " + spelled + " would do"));
}

Result<KernelSpec> make_spec(const KernelOptions& options, const World& world) {
  const Interpreter& python = *world.python;
  KernelSpec spec;
  spec.environment = python.prefix;
  spec.has_debugger = has_debugger(world.distributions);
  const Result<std::string> name = read_name(
      options.name.empty() ? kernel_name_of("cohabit-" + short_name(python.prefix)) : options.name);
  if (!name) return tl::unexpected<Error>(name.error());
  spec.name = *name;
  spec.display_name =
      !options.display_name.empty()
          ? options.display_name
          : fmt::format("Python {} ({}, Cohabit)", python.version, short_name(python.prefix));
  const auto repair = repair_argument(options.repair);
  if (!repair) return tl::unexpected<Error>(repair.error());
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  spec.command = {self, "run", "--repair", *repair};
  if (!options.imports.empty())
    spec.command.insert(spec.command.end(), {"--imports", options.imports});
  spec.command.insert(spec.command.end(),
                      {"--", python.executable, "-m", kLauncher, "-f", "{connection_file}"});
  return spec;
}

Result<int> install(const KernelOptions& options) {
  const auto directory = place_of(options);
  if (!directory) return tl::unexpected<Error>(directory.error());
  if (auto imports = read_module_list(options.imports); !imports)
    return tl::unexpected<Error>(imports.error());
  const Tree tree("");
  World world(tree);
  if (auto found = choose_environment(world, options.environment); !found)
    return tl::unexpected<Error>(found.error());
  if (auto there = check_has_kernel(world); !there) return tl::unexpected<Error>(there.error());
  const auto spec = make_spec(options, world);
  if (!spec) return tl::unexpected<Error>(spec.error());
  if (options.dry_run) {
    const auto text = format_kernel_spec(*spec);
    if (!text) return tl::unexpected<Error>(text.error());
    fmt::print("{}/{}/kernel.json would be:\n{}", *directory, spec->name, *text);
    return 0;
  }
  if (auto done = write_kernel_spec(*directory, *spec); !done)
    return tl::unexpected<Error>(done.error());
  fmt::print("installed the kernel {} in {}/{}\nundo: cohabit kernel remove {}{}\n", spec->name,
             *directory, spec->name, spec->name,
             options.prefix.empty() ? "" : " --prefix " + shell_word(options.prefix));
  return 0;
}

Result<int> list(const KernelOptions& options) {
  const auto directory = place_of(options);
  if (!directory) return tl::unexpected<Error>(directory.error());
  for (const KernelSpec& spec : find_kernel_specs(*directory))
    fmt::print("{}  {}  {}\n", spec.name, report::printable(spec.display_name),
               report::printable(spec.environment));
  return 0;
}

Result<int> remove(const KernelOptions& options) {
  const auto directory = place_of(options);
  if (!directory) return tl::unexpected<Error>(directory.error());
  const auto name = read_name(options.name);
  if (!name) return tl::unexpected<Error>(name.error());
  if (!options.dry_run) {
    if (auto done = remove_kernel_spec(*directory, *name); !done)
      return tl::unexpected<Error>(done.error());
  }
  fmt::print("{} {}/{}\n", options.dry_run ? "would remove" : "removed", *directory, *name);
  return 0;
}

using Function = Result<int> (*)(const KernelOptions&);

CLI::App* add_command(CLI::App& kernel, int& exit_code, const char* name, const char* description,
                      const std::shared_ptr<KernelOptions>& options, Function function) {
  CLI::App* command = kernel.add_subcommand(name, description);
  command->footer("Exit code: 0, 2 Cohabit failed.");
  command->add_flag("--user", options->user, "In the user's data directory of Jupyter (default)");
  command->add_option("--prefix", options->prefix, "In PREFIX/share/jupyter");
  command->callback(
      [options, function, &exit_code] { exit_code = exit_code_of(function(*options)); });
  return command;
}

}  // namespace

void add_kernel_command(CLI::App& app, int& exit_code) {
  CLI::App* kernel = app.add_subcommand(
      "kernel", "Jupyter kernels that start an environment's Python under `cohabit run`");
  kernel->require_subcommand(1);

  auto options = std::make_shared<KernelOptions>();
  CLI::App* command =
      add_command(*kernel, exit_code, "install", "Make a kernel; the environment needs ipykernel",
                  options, install);
  command
      ->add_option("environment", options->environment,
                   "A venv, conda or other prefix, or its interpreter (default: the active one)")
      ->check(refuse_empty);
  command->add_option("--name", options->name, "Its name (default: cohabit- and ENV's)");
  command->add_option("--display-name", options->display_name, "What notebooks show");
  command
      ->add_option("--repair", options->repair,
                   "auto: what every order of ENV's frameworks needs, worked out at each start; "
                   "none, or a file of `cohabit fix --write`")
      ->capture_default_str();
  command->add_option("--imports", options->imports, "Repair this order only: a,b")
      ->check(refuse_empty_list);
  command->add_flag("--dry-run", options->dry_run, "Print the spec, and write nothing");

  options = std::make_shared<KernelOptions>();
  add_command(*kernel, exit_code, "list", "Kernels that `install` has made", options, list);

  options = std::make_shared<KernelOptions>();
  command = add_command(*kernel, exit_code, "remove", "Remove a kernel that `install` has made",
                        options, remove);
  command->add_option("name", options->name, "Its name")->required();
  command->add_flag("--dry-run", options->dry_run, "Only say what would be removed");
}

}  // namespace cohabit
