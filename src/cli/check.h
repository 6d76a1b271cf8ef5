// `cohabit check`, as a command of the application (cli/commands.h).
#pragma once

namespace CLI {
class App;
}

namespace cohabit {

void add_check_command(CLI::App& app, int& exit_code);

}  // namespace cohabit
