// The raw log of a traced process: ld.so's lines and the tracer's records, in the order in which
// they were written (formats: docs/design/trace.md, glibc's elf/dl-misc.c).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cohabit {

struct TracerRecord {
  char kind = 0;  // S P E A: start; O M C: dlopen, dlmopen, dlclose; F: first in a forked child
  int64_t pid = 0, tid = 0, sequence = 0;
  int64_t numbers[3] = {0, 0, 0};
  std::optional<std::string> texts[3];
};

struct LogEvent {
  int64_t pid = 0;
  std::string_view line;               // ld.so's, without its "pid:" prefix
  std::optional<TracerRecord> record;  // or the tracer's
};

// The events of a log; `text` must outlive them. Lines of neither kind are left out: whoever traces
// a process may have got its output mixed in.
std::vector<LogEvent> read_log(std::string_view text, const std::string& nonce);

}  // namespace cohabit
