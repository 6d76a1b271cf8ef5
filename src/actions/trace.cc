// The order of a recording: find the program, prepare a directory for the logs and an environment
// with the tracer in it, run, read the logs.
#include "actions/trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <system_error>

#include "actions/runtime_library.h"
#include "actions/trace_launch.h"
#include "actions/trace_log.h"
#include "actions/trace_merge.h"
#include "actions/trace_program.h"
#include "base/mapped_file.h"
#include "facts/trace/loader_command.h"

namespace cohabit {
namespace {

namespace fs = std::filesystem;

std::string absolute(const std::string& directory, const std::string& path) {
  return path.empty() || path.starts_with('/') ? path : directory + "/" + path;
}

// The kernel names the script, not its interpreter, as the program.
std::string program_of(const StartFacts& start) {
  std::string path = absolute(start.cwd, start.program);
  auto words = script_interpreter(path);
  return words.empty() ? path : absolute(start.cwd, words[0]);
}

// From all words of the process to those of ld.so; none where they are not what AT_EXECFN says.
void cut_loader_command(StartFacts& start) {
  const size_t program = parse_loader_command(start.loader_command).program;
  const bool known =
      program < start.loader_command.size() && start.loader_command[program] == start.program;
  start.loader_command.resize(known ? program + 1 : 0);
}

void complete_start(StartFacts& start, const Launch& launch) {
  remove_tracer(start.environment, launch);
  cut_loader_command(start);
  start.program = program_of(start);
  start.machine = launch.program.machine;
  std::vector<std::string> options;
  if (start.loader_command.size() > 2)
    options.assign(start.loader_command.begin() + 1, start.loader_command.end() - 1);
  start.hwcaps = active_hwcaps(launch.program.loader, options, launch.environment);
}

// For a process in which the tracer never ran: what we know from having started it.
void assume_start(StartFacts& start, const Launch& launch, pid_t pid) {
  start.program = launch.program.program;
  start.executable = launch.program.executable;
  start.arguments = launch.program.script;
  start.arguments.insert(start.arguments.end(), launch.arguments.begin(), launch.arguments.end());
  start.cwd = launch.working_directory.empty() ? current_directory() : launch.working_directory;
  if (launch.program.loader == launch.program.executable) {
    const size_t at = parse_loader_command(start.arguments).program;
    if (at < start.arguments.size()) {
      start.loader_command.assign(start.arguments.begin(), start.arguments.begin() + at + 1);
      start.program = absolute(start.cwd, start.arguments[at]);
    }
  }
  for (const auto& entry : launch.environment) {
    if (!entry.starts_with("LD_") && !entry.starts_with("GLIBC_TUNABLES=")) continue;
    size_t equals = entry.find('=');
    start.environment.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  remove_tracer(start.environment, launch);
  start.machine = launch.program.machine;
  start.hwcaps = active_hwcaps(launch.program.loader, {}, launch.environment);
  start.pid = pid;
}

// The tracer says so by a file beside the log.
bool log_is_full(const Launch& launch, pid_t pid) {
  return ::access(fmt::format("{}.{}.full", launch.log_prefix, pid).c_str(), F_OK) == 0;
}

constexpr std::string_view kProgramStarts = "initialize program: ";

// The lines of programs that a process has become without the tracer, whose own loader wrote them
// into the same file: each such event, and where one begins, the program.
struct Strangers {
  std::vector<bool> is_one;
  std::map<size_t, std::string> begin_at;  // event -> program
};

Strangers find_strangers(const std::vector<LogEvent>& events) {
  struct Process {
    bool initialized = false;
    size_t since = 0;  // the line that says so
    bool is_stranger = false;
  };
  Strangers strangers;
  strangers.is_one.resize(events.size());
  std::map<int64_t, Process> processes;
  for (size_t at = 0; at < events.size(); at++) {
    const LogEvent& event = events[at];
    Process& process = processes[event.pid];
    const bool starts = !event.record && event.line.starts_with(kProgramStarts);
    if (event.record && event.record->kind == 'S') process = {};
    if (starts && process.initialized) {
      const std::string program(event.line.substr(kProgramStarts.size()));
      const std::string needed = fmt::format(";  needed by {} [", program);
      size_t first = at;  // of its lines: those that name it as what needs a library
      for (size_t i = process.since + 1; i < at && first == at; i++)
        if (events[i].pid == event.pid && events[i].line.find(needed) != std::string_view::npos)
          first = i;
      for (size_t i = first; i < at; i++)
        if (events[i].pid == event.pid) strangers.is_one[i] = true;
      strangers.begin_at[first] = program;
      process.is_stranger = true;
    }
    if (starts) {
      process.initialized = true;
      process.since = at;
    }
    if (process.is_stranger) strangers.is_one[at] = true;
  }
  return strangers;
}

// The processes and programs of one log file: a process may fork (its child writes into the same
// file) and may replace its program.
class LogReader {
 public:
  LogReader(const Launch& launch, pid_t pid, bool children)
      : launch_(launch), pid_(pid), children_(children) {
    processes_.emplace(pid, TraceMerger(launch.takes_loader_log, launch.arguments[0]));
    order_.push_back(pid);
  }

  void read(std::string_view text) {
    const std::vector<LogEvent> events = read_log(text, launch_.nonce);
    const Strangers strangers = find_strangers(events);
    for (size_t at = 0; at < events.size(); at++) {
      const LogEvent& event = events[at];
      auto it = processes_.find(event.pid);
      if (it == processes_.end()) {
        if (!children_) continue;
        it = processes_.emplace(event.pid, processes_.at(pid_).after_fork()).first;
        order_.push_back(event.pid);
      }
      if (event.record && event.record->kind == 'S' && it->second.started()) {
        TraceMerger next = it->second.after_exec();
        ended_.push_back(std::move(it->second));
        it->second = std::move(next);
      }
      if (const auto stranger = strangers.begin_at.find(at); stranger != strangers.begin_at.end())
        it->second.become(stranger->second);
      if (!strangers.is_one[at]) it->second.add(event);
    }
  }
  // In order; the first is the file's own process with its first program.
  std::vector<TraceMerger> take() {
    std::vector<TraceMerger> all = std::move(ended_);
    for (pid_t pid : order_) {
      TraceMerger& process = processes_.at(pid);
      if (!process.idle_since_fork() || !has_own_log(pid)) all.push_back(std::move(process));
    }
    return all;
  }

 private:
  // It was forked to run a program, which has written a log of its own.
  bool has_own_log(pid_t pid) const {
    return ::access(fmt::format("{}.{}", launch_.log_prefix, pid).c_str(), F_OK) == 0;
  }

  const Launch& launch_;
  pid_t pid_;
  bool children_;
  std::map<int64_t, TraceMerger> processes_;
  std::vector<pid_t> order_;
  std::vector<TraceMerger> ended_;
};

Result<std::vector<TraceMerger>> read_logs(const Launch& launch, pid_t pid, bool children) {
  LogReader reader(launch, pid, children);
  std::string path = fmt::format("{}.{}", launch.log_prefix, pid);
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    auto file = MappedFile::map(fd, path);
    ::close(fd);
    if (!file) return tl::unexpected(file.error());
    reader.read(file->bytes().text());
  }
  return reader.take();
}

Trace make_trace(const TraceMerger& merger, const Launch& launch) {
  Trace trace = merger.finish();
  complete_start(trace.start, launch);
  return trace;
}

// The other processes' logs, by process number.
std::vector<pid_t> logged_processes(const Launch& launch, pid_t except) {
  std::vector<pid_t> pids;
  std::error_code error;
  fs::path prefix(launch.log_prefix);
  std::string start = prefix.filename().string() + ".";
  for (const auto& entry : fs::directory_iterator(prefix.parent_path(), error)) {
    std::string name = entry.path().filename().string();
    pid_t pid = 0;
    if (!name.starts_with(start)) continue;
    auto [end, bad] = std::from_chars(name.data() + start.size(), name.data() + name.size(), pid);
    if (bad == std::errc() && end == name.data() + name.size() && pid != except) {
      pids.push_back(pid);
    }
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

void add_children(Recording& recording, const Launch& launch, pid_t pid) {
  for (pid_t child : logged_processes(launch, pid)) {
    auto mergers = read_logs(launch, child, true);
    if (!mergers) continue;
    for (const auto& merger : *mergers) {
      if (merger.started())
        recording.children.push_back(make_trace(merger, launch));
      else if (!merger.program().empty())
        recording.trace.blind_spots.push_back(
            fmt::format("process {} ran {} without the tracer (LD_PRELOAD was set anew for it, or "
                        "COHABIT_TRACE=off is set): what it opens is not recorded",
                        child, merger.program()));
    }
  }
}

Recording read_recording(const Launch& launch, const Finished& finished, bool children,
                         const std::vector<TraceMerger>& mergers) {
  Recording recording;
  const TraceMerger& own = mergers.front();
  recording.trace = own.finish();
  auto& spots = recording.trace.blind_spots;
  if (own.started()) {
    complete_start(recording.trace.start, launch);
  } else {
    assume_start(recording.trace.start, launch, finished.pid);
    spots.push_back(
        "the tracer did not run in this process: it ended before its start was complete, or "
        "COHABIT_TRACE=off is set");
  }
  recording.trace.start.parent_pid = 0;
  recording.trace.exit_status = finished.status;
  if (log_is_full(launch, finished.pid)) {
    spots.push_back(
        "the program limits the size of its files (RLIMIT_FSIZE), which leaves no room for the "
        "log: "
        "its calls after that are missing");
  } else if (own.started() && WIFEXITED(finished.status) && launch.takes_loader_log &&
             !own.saw_exit() && own.successor().empty()) {
    spots.push_back(
        children
            ? "the program ended without running its destructors: it called _exit, or replaced "
              "itself by another program (whose trace is beside this one, unless it was started "
              "with an emptied environment, or is none of ld.so's)"
            : "the program ended without running its destructors: it called _exit, or replaced "
              "itself by another program, which only --children follows");
  }
  for (size_t i = 1; i < mergers.size(); ++i) {
    recording.children.push_back(make_trace(mergers[i], launch));
  }
  if (children) {
    add_children(recording, launch, finished.pid);
    spots.emplace_back(
        "of children that were started with an emptied environment (env -i) nothing is seen, nor "
        "of what those start");
  }
  return recording;
}

}  // namespace

Result<std::string> find_tracer_library() {
  return find_runtime_library("libcohabit_trace.so", "COHABIT_TRACER");
}

Result<Recording> record_process(const RecordOptions& options,
                                 const std::vector<std::string>& command) {
  auto directory = LogDirectory::make();
  if (!directory) return tl::unexpected(directory.error());
  if (options.children) directory->leave_to_survivors();
  auto launch = prepare_launch(options, command, directory->path());
  if (!launch) return tl::unexpected(launch.error());
  auto finished = run_launch(*launch, options);
  if (!finished) return tl::unexpected(finished.error());
  auto mergers = read_logs(*launch, finished->pid, options.children);
  if (!mergers) return tl::unexpected(mergers.error());
  if (auto room = directory->check_room(); !room) return tl::unexpected(room.error());
  return read_recording(*launch, *finished, options.children, *mergers);
}

Result<Trace> record_trace(const RecordOptions& options, const std::vector<std::string>& command) {
  auto recording = record_process(options, command);
  if (!recording) return tl::unexpected(recording.error());
  return std::move(recording->trace);
}

}  // namespace cohabit
