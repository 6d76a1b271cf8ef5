// What libcohabit_crash.so (runtime/preload/crash.c) has written about the end of a process:
// numbers, of which names are made here, from the files that the process had mapped.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cohabit {

// A frame of native code. A function that the library does not export has no name.
struct NativeFrame {
  std::string library;  // the mapped file, or as in "[vdso]"; empty: the address is in none
  std::string symbol;   // as in the file, mangled; may be empty
  uint64_t offset = 0;  // from the symbol; without one: the address as the file has it
};

// The frames of the process that this signal has killed, the innermost first; none: the report has
// none of it. It is read as what a damaged process may have written.
std::vector<NativeFrame> read_crash_report(std::string_view report, pid_t process, int signal);

// For people: "function +0x12 in library.so".
std::string frame_text(const NativeFrame& frame);

}  // namespace cohabit
