// Recording a real run: starts a command with the tracer (runtime/preload/trace.c) and makes a
// Trace of what it and ld.so wrote down.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/trace/trace.h"

namespace cohabit {

struct RecordOptions {
  std::string tracer;                    // libcohabit_trace.so; empty: find_tracer_library()
  std::vector<std::string> environment;  // "NAME=value", in place of or added to our own
  std::string working_directory;         // empty: ours
  bool children = false;                 // also trace the processes that the command starts
  // File descriptors for the command; -1: ours.
  int standard_output = -1;
  int standard_error = -1;
  bool forward_signals = false;  // pass signals sent to us on to the command (a command line does)
};

struct Recording {
  Trace trace;                  // the command's own process
  std::vector<Trace> children;  // with RecordOptions::children: by process, in order of start
};

// Runs the command to its end and records it. An error means that we could not run or record it;
// a command that fails or crashes is a recording.
Result<Recording> record_process(const RecordOptions& options,
                                 const std::vector<std::string>& command);
Result<Trace> record_trace(const RecordOptions& options, const std::vector<std::string>& command);

// The tracer's library; COHABIT_TRACER names another one.
Result<std::string> find_tracer_library();

}  // namespace cohabit
