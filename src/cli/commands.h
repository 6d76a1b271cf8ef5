// The commands: each adds itself to the application and sets the exit code when it runs.
// Exit codes of every command: 0 nothing found, 1 findings, 2 Cohabit could not do its job.
#pragma once

namespace CLI {
class App;
}

namespace cohabit {

void add_replay_command(CLI::App& app, int& exit_code);
void add_trace_command(CLI::App& app, int& exit_code);
void add_doctor_command(CLI::App& app, int& exit_code);
void add_check_command(CLI::App& app, int& exit_code);
void add_matrix_command(CLI::App& app, int& exit_code);
void add_capture_command(CLI::App& app, int& exit_code);
int summarize();  // bare `cohabit`
void add_fix_command(CLI::App& app, int& exit_code);
void add_run_command(CLI::App& app, int& exit_code);
void add_clean_command(CLI::App& app, int& exit_code);
void add_env_command(CLI::App& app, int& exit_code);
void add_verify_command(CLI::App& app, int& exit_code);
void add_rules_command(CLI::App& app, int& exit_code);
void add_explain_command(CLI::App& app, int& exit_code);
void add_why_command(CLI::App& app, int& exit_code);
void add_snapshot_commands(CLI::App& app, int& exit_code);
void add_export_command(CLI::App& app, int& exit_code);
void add_recreate_command(CLI::App& app, int& exit_code);
void add_guard_command(CLI::App& app, int& exit_code);
void add_crash_frames_command(CLI::App& app, int& exit_code);  // for the Python package
void add_kernel_command(CLI::App& app, int& exit_code);

}  // namespace cohabit
