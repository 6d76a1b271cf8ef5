// The order of a recording: find the program, prepare a directory for the logs and an environment
// with the tracer in it, run, read the logs.
#include "actions/trace.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>

#include "actions/trace_log.h"
#include "actions/trace_merge.h"
#include "actions/trace_program.h"
#include "base/mapped_file.h"

namespace cohabit {
namespace {

namespace fs = std::filesystem;

// What ld.so is asked to write: files (loads, opens, constructors), and to see the flags of opens
// that the tracer does not see: scopes (GLOBAL, DEEPBIND) and reloc (LAZY or NOW).
constexpr const char* kLoaderDebug = "files,scopes,reloc";
constexpr int kWantedHighDescriptor = 900;

// A directory that goes away with its owner.
class LogDirectory {
 public:
  static Result<LogDirectory> make() {
    const char* set = std::getenv("TMPDIR");
    // ld.so takes LD_PRELOAD apart at spaces and colons, and our variable at ";".
    std::string base = set && *set == '/' && !std::strpbrk(set, " :;$") ? set : "/tmp";
    std::string path = base + "/cohabit-trace-XXXXXX";
    if (!::mkdtemp(path.data())) {
      return fail(
          fmt::format("cannot make a directory for the log in {}: {}", base, std::strerror(errno)));
    }
    return LogDirectory(path);
  }
  explicit LogDirectory(std::string path) : path_(std::move(path)) {}
  LogDirectory(LogDirectory&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  LogDirectory(const LogDirectory&) = delete;
  LogDirectory& operator=(const LogDirectory&) = delete;
  ~LogDirectory() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Everything the child needs between fork and exec, made before fork.
struct Launch {
  TracedProgram program;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::string working_directory;  // empty: stay
  std::string tracer;             // as it stands in LD_PRELOAD
  std::string nonce;
  std::string log_prefix;
  std::string filler;
  int high_descriptor = 0;
  bool takes_loader_log = true;
};

std::string make_nonce() {
  uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) random = ::getpid();
  return fmt::format("{:016x}", random);
}

std::string current_directory() {
  std::error_code error;
  fs::path path = fs::current_path(error);
  return error ? "/" : path.string();
}

// --- the environment ---

std::optional<std::string> find_variable(const std::vector<std::string>& environment,
                                         const std::string& name) {
  for (const auto& entry : environment) {
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  }
  return std::nullopt;
}

void set_variable(std::vector<std::string>& environment, const std::string& entry) {
  std::string name = entry.substr(0, entry.find('=') + 1);
  for (auto& old : environment) {
    if (old.starts_with(name)) {
      old = entry;
      return;
    }
  }
  environment.push_back(entry);
}

std::vector<std::string> users_environment(const RecordOptions& options) {
  std::vector<std::string> environment;
  for (char** entry = environ; entry && *entry; ++entry) environment.emplace_back(*entry);
  for (const auto& entry : options.environment) set_variable(environment, entry);
  return environment;
}

// ld.so's log needs a variable of its own; where the user has set it, his log comes first.
bool may_take_loader_log(const std::vector<std::string>& environment) {
  return !find_variable(environment, "LD_DEBUG") && !find_variable(environment, "LD_DEBUG_OUTPUT");
}

void add_tracer(Launch& launch, const RecordOptions& options, const struct stat& filler) {
  auto& environment = launch.environment;
  auto preload = find_variable(environment, "LD_PRELOAD");
  set_variable(environment,
               "LD_PRELOAD=" + launch.tracer + (preload ? ":" + *preload : std::string()));
  if (launch.takes_loader_log) {
    environment.push_back(std::string("LD_DEBUG=") + kLoaderDebug);
    environment.push_back("LD_DEBUG_OUTPUT=" + launch.log_prefix);
  }
  set_variable(environment, fmt::format("COHABIT_TRACE_RUN=1;{};{};{};{};{};{};{}",
                                        int{options.children}, int{launch.takes_loader_log},
                                        launch.high_descriptor, uint64_t{filler.st_dev},
                                        uint64_t{filler.st_ino}, launch.nonce, launch.log_prefix));
}

// What the tracer saw, without what add_tracer added.
void remove_tracer(std::vector<std::pair<std::string, std::string>>& environment,
                   const Launch& launch) {
  std::erase_if(environment, [&](auto& variable) {
    auto& [name, value] = variable;
    if (launch.takes_loader_log && name == "LD_DEBUG" && value == kLoaderDebug) return true;
    if (launch.takes_loader_log && name == "LD_DEBUG_OUTPUT" && value == launch.log_prefix) {
      return true;
    }
    if (name != "LD_PRELOAD" || !value.starts_with(launch.tracer)) return false;
    value.erase(0, launch.tracer.size());
    if (!value.starts_with(':')) return value.empty();
    value.erase(0, 1);
    return false;
  });
}

// --- preparing ---

// LD_PRELOAD has no way to write a path with a space, a colon or a "$".
Result<std::string> loadable_path(const std::string& tracer, const std::string& directory) {
  if (tracer.find_first_of(" :;$\t\n") == tracer.npos) return tracer;
  std::string link = directory + "/libcohabit_trace.so";
  if (::symlink(tracer.c_str(), link.c_str()) == 0) return link;
  return fail(fmt::format("cannot make the link {}: {}", link, std::strerror(errno)));
}

int choose_high_descriptor() {
  struct rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 64;
  rlim_t most = limit.rlim_cur / 8 * 7;
  return static_cast<int>(std::min<rlim_t>(most, kWantedHighDescriptor));
}

Result<Launch> prepare(const RecordOptions& options, const std::vector<std::string>& command,
                       const std::string& directory) {
  if (command.empty()) return fail("no command to trace was given");
  Launch launch;
  launch.working_directory = options.working_directory;
  launch.environment = users_environment(options);
  std::string search = find_variable(launch.environment, "PATH").value_or("/usr/bin:/bin");
  auto program = find_program(
      command[0], search,
      options.working_directory.empty() ? current_directory() : options.working_directory);
  if (!program) return tl::unexpected(program.error());
  launch.program = *program;
  launch.arguments = command;
  auto found = options.tracer.empty() ? find_tracer_library() : Result<std::string>(options.tracer);
  if (!found) return tl::unexpected(found.error());
  auto tracer = loadable_path(*found, directory);
  if (!tracer) return tl::unexpected(tracer.error());
  launch.tracer = *tracer;
  launch.nonce = make_nonce();
  launch.log_prefix = directory + "/ld";
  launch.filler = directory + "/filler";
  launch.high_descriptor = choose_high_descriptor();
  launch.takes_loader_log = may_take_loader_log(launch.environment);

  int filler = ::open(launch.filler.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
  struct stat status{};
  if (filler < 0 || ::fstat(filler, &status) != 0) {
    return fail(fmt::format("cannot write in {}: {}", directory, std::strerror(errno)));
  }
  ::close(filler);
  add_tracer(launch, options, status);
  return launch;
}

// --- running: what follows between fork and exec calls only what is safe in a forked thread ---

// ld.so opens its log at the lowest free descriptor, and keeps the number for the life of the
// process: a program that closes it and opens something else there would find ld.so's lines in its
// file. So all low numbers are taken while ld.so starts; the tracer's constructor frees them.
void fill_low_descriptors(const char* filler, int high) {
  int low = ::open(filler, O_PATH | O_CLOEXEC);
  int source = ::fcntl(low, F_DUPFD_CLOEXEC, high);
  if (source < 0) return;
  ::close(low);
  for (int i = 0; i < high; ++i) {
    int flags = ::fcntl(i, F_GETFD);
    if (flags < 0 || (flags & FD_CLOEXEC)) ::dup2(source, i);
  }
}

[[noreturn]] void become_command(const Launch& launch, const RecordOptions& options, char** argv,
                                 char** envp, int failure, const sigset_t& signals) {
  auto give_up = [&] {
    int error = errno;
    (void)!::write(failure, &error, sizeof error);
    ::_exit(125);
  };
  if (options.standard_output >= 0) ::dup2(options.standard_output, 1);
  if (options.standard_error >= 0) ::dup2(options.standard_error, 2);
  if (!launch.working_directory.empty() && ::chdir(launch.working_directory.c_str()) != 0) {
    give_up();
  }
  int high = ::fcntl(failure, F_DUPFD_CLOEXEC, launch.high_descriptor);
  if (high >= 0) {
    ::close(failure);
    failure = high;
    if (launch.takes_loader_log) {
      fill_low_descriptors(launch.filler.c_str(), launch.high_descriptor);
    }
  }
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  ::execve(launch.program.command.c_str(), argv, envp);
  give_up();
  ::_exit(125);
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> list;
  list.reserve(strings.size() + 1);
  for (const auto& s : strings) list.push_back(const_cast<char*>(s.c_str()));
  list.push_back(nullptr);
  return list;
}

// Signals that a process sends us are meant for the command. Those from the terminal reach it
// without our help; both must not end us before it.
class SignalForwarder {
 public:
  explicit SignalForwarder(bool active) {
    if (!active) return;
    struct sigaction action{};
    action.sa_sigaction = forward;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    for (size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], nullptr, &old_[i]);
    for (size_t i = 0; i < std::size(kSignals); ++i) {
      if (old_[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);
    }
    active_ = true;
  }
  ~SignalForwarder() {
    for (size_t i = 0; active_ && i < std::size(kSignals); ++i) {
      ::sigaction(kSignals[i], &old_[i], nullptr);
    }
    target_ = 0;
  }
  SignalForwarder(const SignalForwarder&) = delete;
  SignalForwarder& operator=(const SignalForwarder&) = delete;
  static void set_target(pid_t target) { target_ = target; }

 private:
  static void forward(int signal, siginfo_t* info, void*) {
    if (target_ > 0 && info->si_code <= 0) ::kill(target_, signal);
  }
  static constexpr int kSignals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
  static inline volatile pid_t target_ = 0;
  struct sigaction old_[std::size(kSignals)]{};
  bool active_ = false;
};

struct Finished {
  pid_t pid = 0;
  int status = 0;
};

Result<Finished> run(const Launch& launch, const RecordOptions& options) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail("cannot make a pipe");
  auto argv = pointers(launch.arguments), envp = pointers(launch.environment);
  // No signal may come between fork and the moment when we know where to send it.
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  SignalForwarder forwarder(options.forward_signals);
  pid_t pid = ::fork();
  if (pid == 0) {
    ::close(ends[0]);
    become_command(launch, options, argv.data(), envp.data(), ends[1], before);
  }
  int fork_error = errno;
  SignalForwarder::set_target(pid);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  ::close(ends[1]);
  if (pid < 0) {
    ::close(ends[0]);
    return fail(fmt::format("cannot start a process: {}", std::strerror(fork_error)));
  }
  int error = 0;
  ssize_t got;
  do got = ::read(ends[0], &error, sizeof error);
  while (got < 0 && errno == EINTR);
  ::close(ends[0]);
  Finished finished;
  finished.pid = pid;
  while (::waitpid(pid, &finished.status, 0) < 0 && errno == EINTR) {
  }
  if (got > 0) {
    return fail(fmt::format("cannot run {}: {}", launch.program.command, std::strerror(error)));
  }
  return finished;
}

// --- reading the logs ---

std::string absolute(const std::string& directory, const std::string& path) {
  return path.empty() || path.starts_with('/') ? path : directory + "/" + path;
}

// The kernel names the script, not its interpreter, as the program.
std::string program_of(const StartFacts& start) {
  std::string path = absolute(start.cwd, start.program);
  auto words = script_interpreter(path);
  return words.empty() ? path : absolute(start.cwd, words[0]);
}

void complete_start(StartFacts& start, const Launch& launch) {
  remove_tracer(start.environment, launch);
  start.program = program_of(start);
  start.machine = launch.program.machine;
  start.hwcaps = active_hwcaps(launch.program.loader, launch.environment);
}

// For a process in which the tracer never ran: what we know from having started it.
void assume_start(StartFacts& start, const Launch& launch, pid_t pid) {
  start.program = launch.program.program;
  start.executable = launch.program.executable;
  start.arguments = launch.program.script;
  start.arguments.insert(start.arguments.end(), launch.arguments.begin(), launch.arguments.end());
  start.cwd = launch.working_directory.empty() ? current_directory() : launch.working_directory;
  for (const auto& entry : launch.environment) {
    if (!entry.starts_with("LD_") && !entry.starts_with("GLIBC_TUNABLES=")) continue;
    size_t equals = entry.find('=');
    start.environment.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  start.pid = pid;
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
    for (const LogEvent& event : read_log(text, launch_.nonce)) {
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
      it->second.add(event);
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
      if (merger.started()) recording.children.push_back(make_trace(merger, launch));
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
  if (own.started() && WIFEXITED(finished.status) && launch.takes_loader_log && !own.saw_exit()) {
    spots.push_back(
        "the program ended without running its destructors: it called _exit, or replaced itself by "
        "another program, which only --children follows");
  }
  for (size_t i = 1; i < mergers.size(); ++i) {
    recording.children.push_back(make_trace(mergers[i], launch));
  }
  if (children) add_children(recording, launch, finished.pid);
  return recording;
}

// Where our own code lies: beside the executable, or beside the Python module that it is part of.
std::vector<std::string> own_directories() {
  std::error_code error;
  std::vector<std::string> directories;
  Dl_info info;
  if (::dladdr(reinterpret_cast<const void*>(&find_tracer_library), &info) && info.dli_fname) {
    fs::path file = fs::canonical(info.dli_fname, error);
    if (!error) directories.push_back(file.parent_path().string());
  }
  directories.push_back(fs::read_symlink("/proc/self/exe", error).parent_path().string());
  return directories;
}

}  // namespace

Result<std::string> find_tracer_library() {
  constexpr const char* kName = "libcohabit_trace.so";
  const char* set = std::getenv("COHABIT_TRACER");
  std::vector<std::string> places;
  if (set && *set) {
    places.push_back(absolute(current_directory(), set));
  } else {
    for (const auto& directory : own_directories()) {
      for (const char* below : {"", "../lib/cohabit", "../lib64/cohabit"}) {
        fs::path place = fs::path(directory) / below / kName;
        places.push_back(place.lexically_normal().string());
      }
    }
  }
  std::string tried;
  for (const auto& place : places) {
    if (::access(place.c_str(), R_OK) == 0) return place;
    tried += (tried.empty() ? "" : ", ") + place;
  }
  return fail(
      fmt::format("the tracer's library is not there (tried {}); set COHABIT_TRACER to its "
                  "path",
                  tried));
}

Result<Recording> record_process(const RecordOptions& options,
                                 const std::vector<std::string>& command) {
  auto directory = LogDirectory::make();
  if (!directory) return tl::unexpected(directory.error());
  auto launch = prepare(options, command, directory->path());
  if (!launch) return tl::unexpected(launch.error());
  auto finished = run(*launch, options);
  if (!finished) return tl::unexpected(finished.error());
  auto mergers = read_logs(*launch, finished->pid, options.children);
  if (!mergers) return tl::unexpected(mergers.error());
  return read_recording(*launch, *finished, options.children, *mergers);
}

Result<Trace> record_trace(const RecordOptions& options, const std::vector<std::string>& command) {
  auto recording = record_process(options, command);
  if (!recording) return tl::unexpected(recording.error());
  return std::move(recording->trace);
}

}  // namespace cohabit
