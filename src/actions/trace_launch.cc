#include "actions/trace_launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>
#include <system_error>

#include "actions/processes.h"
#include "base/descriptor.h"
#include "base/tree.h"
#include "facts/elf/object.h"

namespace cohabit {
namespace {

namespace fs = std::filesystem;

// What ld.so is asked to write: files (loads, opens, constructors), and to see the flags of opens
// that the tracer does not see: scopes (GLOBAL, DEEPBIND) and reloc (LAZY or NOW).
constexpr const char* kLoaderDebug = "files,scopes,reloc";
constexpr int kWantedHighDescriptor = 900;

std::string make_nonce() {
  uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random) random = ::getpid();
  return fmt::format("{:016x}", random);
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

// First, but for the library that changes flags (cohabit run): the tracer is to see them changed.
std::string with_tracer(const std::optional<std::string>& preload, const std::string& tracer) {
  if (!preload) return tracer;
  const size_t end = std::min(preload->find_first_of(" :"), preload->size());
  if (fs::path(preload->substr(0, end)).filename() == "libcohabit_preload.so")
    return preload->substr(0, end) + ":" + tracer + preload->substr(end);
  return tracer + ":" + *preload;
}

// Takes the tracer out again. True: there was nothing else.
bool remove_tracer(std::string& preload, const std::string& tracer) {
  if (preload == tracer) return true;
  if (preload.starts_with(tracer + ":")) {
    preload.erase(0, tracer.size() + 1);
  } else if (const size_t at = preload.find(":" + tracer); at != std::string::npos) {
    preload.erase(at, tracer.size() + 1);
  }
  return false;
}

bool needs_asan(const std::string& executable) {
  const auto file = Tree().map(executable);
  if (!file) return false;
  for (const elf::Dependency& needed : elf::parse(file->bytes()).dependencies)
    if (needed.name.find("asan") != std::string_view::npos) return true;
  return false;
}

// AddressSanitizer's runtime refuses to start behind another library. It reads its options before
// the tracer, which knows ours by the "no" and takes it away again, is constructed.
void allow_before_asan(Launch& launch) {
  constexpr const char* kOption = "verify_asan_link_order=no";
  const auto preload = find_variable(launch.environment, "LD_PRELOAD");
  const bool preloaded = preload && preload->find("asan") != std::string::npos;
  if (!preloaded && !needs_asan(launch.program.executable)) return;
  const auto options = find_variable(launch.environment, "ASAN_OPTIONS");
  set_variable(launch.environment, "ASAN_OPTIONS=" + (options ? *options + ":" : "") + kOption);
}

void add_tracer(Launch& launch, const RecordOptions& options, const struct stat& filler) {
  auto& environment = launch.environment;
  set_variable(environment, "LD_PRELOAD=" + with_tracer(find_variable(environment, "LD_PRELOAD"),
                                                        launch.tracer));
  if (launch.takes_loader_log) {
    environment.push_back(std::string("LD_DEBUG=") + kLoaderDebug);
    environment.push_back("LD_DEBUG_OUTPUT=" + launch.log_prefix);
  }
  set_variable(environment, fmt::format("COHABIT_TRACE_RUN=1;{};{};{};{};{};{};{}",
                                        int{options.children}, int{launch.takes_loader_log},
                                        launch.high_descriptor, uint64_t{filler.st_dev},
                                        uint64_t{filler.st_ino}, launch.nonce, launch.log_prefix));
}

// --- preparing ---

// LD_PRELOAD has no way to write a path with a space, a colon or a "$".
Result<std::string> loadable_path(const std::string& tracer, const std::string& directory) {
  if (tracer.find_first_of(" :;$\t\n") == tracer.npos) return tracer;
  std::string link = directory + "/libcohabit_trace.so";
  if (::symlink(tracer.c_str(), link.c_str()) == 0) return link;
  return fail(fmt::format("cannot make the link {}: {}", link, std::strerror(errno)));
}

// A log that meets the limit ends the program by SIGXFSZ.
Result<void> check_file_limit() {
  constexpr rlim_t kRoom = rlim_t{16} << 20;
  struct rlimit limit;
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= kRoom) return {};
  return fail(fmt::format(
      "files may not be larger than {} bytes here (ulimit -f), which leaves no room for "
      "the log of a traced program; allow at least 16 MiB",
      limit.rlim_cur));
}

int choose_high_descriptor() {
  struct rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 64;
  rlim_t most = limit.rlim_cur / 8 * 7;
  return static_cast<int>(std::min<rlim_t>(most, kWantedHighDescriptor));
}

}  // namespace

namespace {

constexpr const char* kDirectoryName = "cohabit-trace-";
constexpr const char* kLockName = "/lock";
constexpr time_t kSettled = 60;  // seconds: a younger one may have no lock yet

// Whether a process of this user was started with its log in this directory, and still runs. What
// it starts needs the directory: without it ld.so writes its log to the standard output.
bool is_used(const std::string& directory) {
  return !find_processes("LD_DEBUG_OUTPUT=" + directory + "/").empty();
}

void remove_abandoned(const std::string& base) {
  std::error_code error;
  for (fs::directory_iterator at(base, error), end; !error && at != end; at.increment(error)) {
    const std::string path = at->path().string();
    struct stat status{};
    if (!at->path().filename().string().starts_with(kDirectoryName) ||
        ::lstat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
        status.st_uid != ::geteuid() || std::time(nullptr) - status.st_mtime < kSettled)
      continue;
    const Descriptor lock(::open((path + kLockName).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    std::error_code ignored;
    if (lock.is_open() && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0 && !is_used(path))
      fs::remove_all(path, ignored);
  }
}

}  // namespace

Result<LogDirectory> LogDirectory::make() {
  const char* set = std::getenv("TMPDIR");
  // ld.so takes LD_PRELOAD apart at spaces and colons, and our variable at ";".
  std::string base = set && *set == '/' && !std::strpbrk(set, " :;$") ? set : "/tmp";
  remove_abandoned(base);
  std::string path = base + "/" + kDirectoryName + "XXXXXX";
  if (!::mkdtemp(path.data())) {
    return fail(
        fmt::format("cannot make a directory for the log in {}: {}", base, std::strerror(errno)));
  }
  const int lock = ::open((path + kLockName).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock >= 0 && ::flock(lock, LOCK_SH | LOCK_NB) != 0) {
    ::close(lock);
    return fail(path + " was removed while it was made; try again");
  }
  return LogDirectory(path, lock);
}

Result<void> LogDirectory::check_room() const {
  constexpr off_t kRoom = 1 << 16;
  const int fd = ::open((path_ + "/room").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const int error = fd < 0 ? errno : ::posix_fallocate(fd, 0, kRoom);
  if (fd >= 0) ::close(fd);
  if (error != ENOSPC && error != EDQUOT) return {};
  return fail(
      fmt::format("the command ran, but what it opened could not be written down: {}: {}; make "
                  "room there, or set TMPDIR to another directory",
                  path_, std::strerror(error)));
}

LogDirectory::~LogDirectory() {
  std::error_code ignored;
  if (!path_.empty() && !(may_outlive_ && is_used(path_))) fs::remove_all(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

std::string current_directory() {
  std::error_code error;
  fs::path path = fs::current_path(error);
  return error ? "/" : path.string();
}

void remove_tracer(std::vector<std::pair<std::string, std::string>>& environment,
                   const Launch& launch) {
  std::erase_if(environment, [&](auto& variable) {
    auto& [name, value] = variable;
    if (launch.takes_loader_log && name == "LD_DEBUG" && value == kLoaderDebug) return true;
    if (launch.takes_loader_log && name == "LD_DEBUG_OUTPUT" && value == launch.log_prefix) {
      return true;
    }
    return name == "LD_PRELOAD" && remove_tracer(value, launch.tracer);
  });
}

Result<Launch> prepare_launch(const RecordOptions& options, const std::vector<std::string>& command,
                              const std::string& directory) {
  if (command.empty()) return fail("no command to trace was given");
  if (auto room = check_file_limit(); !room) return tl::unexpected(room.error());
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
  allow_before_asan(launch);
  add_tracer(launch, options, status);
  return launch;
}

}  // namespace cohabit
