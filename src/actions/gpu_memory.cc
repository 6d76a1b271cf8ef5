// No file says how much memory a GPU has; nvidia-smi does, where there is one.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "actions/ask.h"
#include "actions/launch.h"

namespace cohabit {
namespace {

constexpr int kPatience = 5000;  // milliseconds; a driver in trouble answers never
constexpr uint64_t kMegabyte = 1 << 20;

}  // namespace

uint64_t ask_gpu_memory() {
  const std::string text = ask_program(
      {"nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"}, kPatience);
  uint64_t least = 0;
  for (const char* at = text.c_str(); *at;) {
    char* end = nullptr;
    const uint64_t megabytes = std::strtoull(at, &end, 10);
    if (end == at) break;
    least = least ? std::min(least, megabytes) : megabytes;
    at = end;
    while (*at == '\n' || *at == '\r' || *at == ' ') at++;
  }
  return least * kMegabyte;
}

}  // namespace cohabit
