// The C ABI (include/cohabit/cohabit.h), and so the command line: every command adds itself
// (src/cli/<command>.cc). Exceptions of the argument parser end here.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <string_view>
#include <vector>

#include "base/say.h"
#include "cli/commands.h"
#include "cohabit/cohabit.h"
#include "findings/rule.h"
#include "version.h"

namespace {

constexpr int kFailed = 2;
constexpr int kCannotStart = 125;  // other codes are those of the command that was to be started

int failure_of(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  return command == "trace" || command == "run" ? kCannotStart : kFailed;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

// The nearest option for each that there is not. `arguments`: behind the program's name.
void suggest_options(const CLI::App& app, const std::vector<std::string_view>& arguments) {
  std::vector<std::string> known;
  const auto add = [&known](const CLI::App& command) {
    for (const CLI::Option* option : command.get_options())
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
  };
  add(app);
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!arguments.empty() && command->get_name() == arguments[0]) add(*command);
  for (std::string_view word : arguments) {
    if (word == "--") return;
    word = word.substr(0, word.find('='));
    if (!word.starts_with("--") || std::find(known.begin(), known.end(), word) != known.end())
      continue;
    if (const auto meant = cohabit::nearest_name(word, known))
      cohabit::say("There is no option {}; did you mean {}?\n", word, *meant);
  }
}

// `cohabit why [LOG] [-- COMMAND]`: the parser would take the first word of a command for the log.
std::vector<char*> with_log_named(int argc, char** argv) {
  static char standard_input[] = "-";
  std::vector<char*> arguments(argv, argv + argc);
  if (argc < 2 || std::string_view(argv[1]) != "why") return arguments;
  const auto dashes = std::find_if(arguments.begin(), arguments.end(),
                                   [](const char* word) { return std::string_view(word) == "--"; });
  if (dashes != arguments.end()) arguments.insert(dashes, standard_input);
  return arguments;
}

// `check --find-links DIR torch`: an option that may be repeated would take all words that follow
// it.
void take_one_value_each(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    const auto options = command->get_options();
    const auto is_positional = [](const CLI::Option* option) { return option->get_positional(); };
    if (std::none_of(options.begin(), options.end(), is_positional)) continue;
    for (CLI::Option* option : options)
      if (!option->get_positional() && option->get_expected_max() > 1)
        option->allow_extra_args(false);
  }
}

int run(int argc, char** argv) {
  CLI::App app{"Cohabit: makes GPU frameworks live together in one process", "cohabit"};
  app.require_subcommand(0, 1);
  app.footer(
      "Without a command: the verdicts on the environment that is active here, and what to do\n"
      "next.");
  app.set_version_flag("--version", "cohabit " COHABIT_VERSION);
  int exit_code = 0;
  cohabit::add_doctor_command(app, exit_code);
  cohabit::add_capture_command(app, exit_code);
  cohabit::add_trace_command(app, exit_code);
  cohabit::add_replay_command(app, exit_code);
  cohabit::add_fix_command(app, exit_code);
  cohabit::add_run_command(app, exit_code);
  cohabit::add_env_command(app, exit_code);
  cohabit::add_verify_command(app, exit_code);
  cohabit::add_rules_command(app, exit_code);
  cohabit::add_explain_command(app, exit_code);
  cohabit::add_why_command(app, exit_code);
  cohabit::add_check_command(app, exit_code);
  cohabit::add_matrix_command(app, exit_code);
  cohabit::add_snapshot_commands(app, exit_code);
  cohabit::add_export_command(app, exit_code);
  cohabit::add_recreate_command(app, exit_code);
  cohabit::add_clean_command(app, exit_code);
  cohabit::add_guard_command(app, exit_code);
  cohabit::add_crash_frames_command(app, exit_code);
  cohabit::add_kernel_command(app, exit_code);
  take_one_value_each(app);
  try {
    std::vector<char*> arguments = with_log_named(argc, argv);
    app.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::ParseError& error) {
    const int status = app.exit(error);
    if (status == 0) return 0;  // --help, --version
    if (argc > 1 && argv[1][0] != '-')
      if (const auto meant = cohabit::nearest_name(argv[1], command_names(app));
          meant && *meant != argv[1])
        cohabit::say("There is no command {}; did you mean {}?\n", argv[1], *meant);
    suggest_options(app, {argv + 1, argv + argc});
    return failure_of(argc, argv);
  }
  return app.get_subcommands().empty() ? cohabit::summarize() : exit_code;
}

}  // namespace

extern "C" const char* cohabit_version(void) {
  return COHABIT_VERSION;
}

extern "C" int cohabit_main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    cohabit::say("cohabit: {}\n", error.what());
  }
  return failure_of(argc, argv);
}
