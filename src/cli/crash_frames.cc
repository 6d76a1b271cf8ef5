// cohabit crash-frames: for the Python package (_native_frames.py), whose workers tell of a crash
// as the children of `verify` do. --library says what to preload; otherwise the report of a process
// comes by standard input, and its frames go out, one on each line.
#include <fmt/format.h>
#include <sys/types.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <memory>
#include <string>

#include "actions/crash_report.h"
#include "actions/runtime_library.h"
#include "cli/commands.h"
#include "report/printable.h"

namespace cohabit {
namespace {

struct CrashFramesOptions {
  bool library = false;
  pid_t process = 0;
  int signal = 0;
};

std::string read_standard_input() {
  constexpr size_t kMost = 64 << 20;  // the writer limits its reports, a damaged one does not
  std::string text;
  std::array<char, 1 << 16> part;
  while (text.size() < kMost) {
    const size_t got = std::fread(part.data(), 1, part.size(), stdin);
    if (got == 0) break;
    text.append(part.data(), got);
  }
  return text;
}

int print_library() {
  const auto library = find_runtime_library("libcohabit_crash.so", "COHABIT_CRASH_LIBRARY");
  const auto path = library ? preloadable_path(*library) : library;
  if (path) fmt::print("{}\n", *path);
  return path ? 0 : 2;
}

int print_frames(const CrashFramesOptions& options) {
  const std::string text = read_standard_input();
  for (const NativeFrame& frame : read_crash_report(text, options.process, options.signal))
    fmt::print("{}\n", report::printable(frame_text(frame)));
  return 0;
}

}  // namespace

void add_crash_frames_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CrashFramesOptions>();
  CLI::App* command =
      app.add_subcommand("crash-frames", "For the Python package: frames of a crash");
  command->group("");  // not in the help
  command->add_flag("--library", options->library, "Print what has to be preloaded");
  command->add_option("process", options->process, "The process that has written the report");
  command->add_option("signal", options->signal, "The signal that ended it");
  command->callback([options, &exit_code] {
    exit_code = options->library ? print_library() : print_frames(*options);
  });
}

}  // namespace cohabit
