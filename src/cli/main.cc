#include <CLI/CLI.hpp>

#include "cli/commands.h"

int main(int argc, char** argv) {
  CLI::App app{"Cohabit: makes GPU frameworks live together in one process", "cohabit"};
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", "cohabit 0.1.0");
  int exit_code = 0;
  cohabit::add_trace_command(app, exit_code);
  cohabit::add_replay_command(app, exit_code);
  CLI11_PARSE(app, argc, argv);
  return exit_code;
}
