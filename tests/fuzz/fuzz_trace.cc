// Fuzz target: the trace file. What is read must survive writing and reading again.
#include <cstdlib>

#include "facts/trace/trace.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto trace = cohabit::parse_trace(std::string(reinterpret_cast<const char*>(data), size));
  if (!trace) return 0;
  std::string text = cohabit::format_trace(*trace);
  auto again = cohabit::parse_trace(text);
  if (!again || cohabit::format_trace(*again) != text) std::abort();
  return 0;
}
