// Fuzz target: the trace file, and (input that starts with "L") the raw log of a traced process.
// What is read must survive writing and reading again.
#include <cstdlib>
#include <string_view>

#include "actions/trace_log.h"
#include "actions/trace_merge.h"
#include "facts/trace/trace.h"

namespace {

void read_raw_log(std::string_view text) {
  cohabit::TraceMerger merger(true, "program");
  for (const auto& event : cohabit::read_log(text, "#")) merger.add(event);
  (void)cohabit::parse_trace(cohabit::format_trace(merger.after_fork().finish()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 0 && data[0] == 'L') {
    read_raw_log({reinterpret_cast<const char*>(data) + 1, size - 1});
    return 0;
  }
  auto trace = cohabit::parse_trace(std::string(reinterpret_cast<const char*>(data), size));
  if (!trace) return 0;
  std::string text = cohabit::format_trace(*trace);
  auto again = cohabit::parse_trace(text);
  if (!again || cohabit::format_trace(*again) != text) std::abort();
  return 0;
}
