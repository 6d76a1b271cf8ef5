#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "actions/trace.h"
#include "base/say.h"
#include "base/write_file.h"
#include "cli/arguments.h"
#include "cli/commands.h"

namespace cohabit {
namespace {

// As env and timeout do it: these leave the command's own exit codes alone.
constexpr int kCannotTrace = 125;

constexpr const char* kDefaultOut = "cohabit.trace";

struct TraceArguments {
  std::string out = kDefaultOut;
  bool children = false;
  std::vector<std::string> command;
};

bool write_trace(const std::string& path, const Trace& trace) {
  const auto done = write_file(path, format_trace(trace));
  if (!done) say("cohabit trace: {}\n", done.error().message);
  return done.has_value();
}

// A process that replaced its program has several traces: OUT.PID, OUT.PID.2, ...
bool write_children(const std::string& out, const std::vector<Trace>& children, int64_t own_pid) {
  std::map<int64_t, int> programs{{own_pid, 1}};
  for (const auto& child : children) {
    std::string path = fmt::format("{}.{}", out, child.start.pid);
    if (int number = ++programs[child.start.pid]; number > 1) path += fmt::format(".{}", number);
    if (!write_trace(path, child)) return false;
  }
  return true;
}

int trace(const TraceArguments& arguments) {
  if (auto possible = check_can_write(arguments.out); !possible) {
    say("cohabit trace: {}; nothing was run\n", possible.error().message);
    return kCannotTrace;
  }
  RecordOptions options;
  options.children = arguments.children;
  options.forward_signals = true;
  auto recording = record_process(options, arguments.command);
  if (!recording) {
    say("cohabit trace: {}\n", recording.error().message);
    return kCannotTrace;
  }
  const Trace& own = recording->trace;
  if (!write_trace(arguments.out, own)) return kCannotTrace;
  if (arguments.out == kDefaultOut) say("cohabit trace: written to {}\n", kDefaultOut);
  if (!write_children(arguments.out, recording->children, own.start.pid)) return kCannotTrace;
  for (const auto& spot : own.blind_spots) say("cohabit trace: note: {}\n", spot);
  return own.exit_status ? exit_code_of_process(*own.exit_status) : kCannotTrace;
}

}  // namespace

void add_trace_command(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<TraceArguments>();
  CLI::App* command =
      app.add_subcommand("trace", "Run a command and record the calls it makes to the loader");
  command->footer(
      "Exit code: the command's (128 + n when signal n ended it); 125 when Cohabit failed.\n"
      "Static programs and programs that gain privileges cannot be traced.");
  command->add_option("--out", arguments->out, "Trace file to write")->capture_default_str();
  command->add_flag("--children", arguments->children,
                    "Also trace the processes it starts, into FILE.PID, and programs it execs");
  command->add_option("command", arguments->command, "-- and the command with its arguments")
      ->required();
  command->positionals_at_end();
  command->callback([arguments, &exit_code] { exit_code = trace(*arguments); });
}

}  // namespace cohabit
