// A trace: the calls a process made to the loader, and the facts of its start. Calls only: which
// libraries came of them and what was bound is for the simulation to say (docs/design/trace.md has
// the file format, one JSON object per line).
//
// Calls stand in the order in which ld.so took them up (the order of its lock), an inner call after
// the outer one in whose constructor it was made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace cohabit {

enum class CallKind {
  kDlopen,
  kDlmopen,
  kDlclose,
  kBind,  // never recorded, for tests only: the caller calls the function `name` through its PLT
};

struct LoaderCall {
  CallKind kind = CallKind::kDlopen;
  std::optional<std::string> name;  // dlopen's argument; nothing for dlopen(NULL). For dlclose: the
                                    // l_name of the handle's link map ("" is the program)
  int flags = 0;                    // RTLD_* bits as given to the call
  int64_t link_map_id = 0;          // dlmopen: the namespace asked for (LM_ID_NEWLM is -1)
  int64_t ns = 0;                   // dlclose: the namespace of the handle (0 if unknown)
  std::optional<bool> unmapped;     // dlclose that nobody else's open outweighs: whether the object
                                    // went, where ld.so's log tells. What keeps it besides the
                                    // opens and bindings (destructors of thread_local objects,
                                    // dlsym) the simulation cannot know
  std::string caller;  // l_name of the object that holds the return address; "" program
  int64_t caller_ns = 0;
  std::string cwd;  // the current directory; empty: as in the call before
  int depth = 0;    // 0: not inside another call; n: made while the last call of depth n-1 ran its
                    // constructors (or destructors, for dlclose)
  std::string constructor;  // depth > 0 or at start-up: l_name of the object whose constructor runs
  bool during_start = false;  // made by a constructor of the start-up closure
  bool inferred = false;      // not seen by the wrapper, taken from ld.so's own log (opens inside
                              // libc, callers opened with DEEPBIND); flags are then what the log
                              // shows of their effect
};

struct StartFacts {
  std::string program;     // path given to execve, absolute; the interpreter of a #! script
  std::string executable;  // what runs, links resolved: its folder is the program's $ORIGIN
  std::vector<std::string> arguments;
  std::string cwd;
  // Where the program was started through ld.so: its words, from its own name to the program's.
  std::vector<std::string> loader_command;
  // The variables that ld.so reads (LD_*, GLIBC_TUNABLES), as the traced program got them, without
  // what the tracer added.
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::string> hwcaps;  // active glibc-hwcaps subdirectories, best first
  std::string platform;             // AT_PLATFORM
  std::string glibc;                // "2.36"
  std::string machine;              // "x86_64", "aarch64"
  bool secure = false;              // AT_SECURE
  std::string tracer;  // the preloaded tracer's path when it was part of the process, else empty
  int64_t pid = 0;
  int64_t parent_pid = 0;  // 0 for the command itself
  bool forked = false;     // a child made by fork: its trace begins with the parent's calls before
};

struct Trace {
  StartFacts start;
  std::vector<LoaderCall> calls;
  std::vector<std::string> blind_spots;  // in words: what this trace cannot know
  std::optional<int> exit_status;        // as from waitpid; nothing if unknown
};

// Limits on what a trace file may hold; parse_trace refuses more.
inline constexpr size_t kMaxTraceString = 128 * 1024;
inline constexpr size_t kMaxTraceItems = 100'000;  // arguments, variables, blind spots
inline constexpr size_t kMaxTraceCalls = 1'000'000;
inline constexpr size_t kMaxTraceLine = 64 * 1024 * 1024;
inline constexpr int kMaxCallDepth = 1000;

// The text of a trace file <-> Trace. Errors name the line.
Result<Trace> parse_trace(const std::string& text);
std::string format_trace(const Trace& trace);
// The trace in a file; errors name the file.
Result<Trace> read_trace_file(const std::string& path);

}  // namespace cohabit
