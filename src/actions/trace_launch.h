// A traced command, prepared and run: the environment with the tracer in it, the directory for the
// logs, the process.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "actions/trace.h"
#include "actions/trace_program.h"
#include "base/result.h"

namespace cohabit {

// A directory that goes away with its owner.
class LogDirectory {
 public:
  // Removes those of the same user that nobody uses any more, too.
  static Result<LogDirectory> make();
  LogDirectory(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  LogDirectory(LogDirectory&& other) noexcept
      : path_(std::exchange(other.path_, "")),
        lock_(std::exchange(other.lock_, -1)),
        may_outlive_(other.may_outlive_) {}
  LogDirectory(const LogDirectory&) = delete;
  LogDirectory& operator=(const LogDirectory&) = delete;
  ~LogDirectory();
  const std::string& path() const { return path_; }
  // Traced processes that run on keep it; the next trace after their end removes it.
  void leave_to_survivors() { may_outlive_ = true; }
  // An error when the disk is full: who logs (ld.so, the tracer) has no way to say so.
  Result<void> check_room() const;

 private:
  std::string path_;
  int lock_ = -1;  // a descriptor whose lock says that the directory is in use
  bool may_outlive_ = false;
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

Result<Launch> prepare_launch(const RecordOptions& options, const std::vector<std::string>& command,
                              const std::string& directory);

struct Finished {
  pid_t pid = 0;
  int status = 0;
};

// Runs it to its end.
Result<Finished> run_launch(const Launch& launch, const RecordOptions& options);

// What the tracer saw of LD_* and GLIBC_TUNABLES, without what the launch has added.
void remove_tracer(std::vector<std::pair<std::string, std::string>>& environment,
                   const Launch& launch);

std::string current_directory();

}  // namespace cohabit
