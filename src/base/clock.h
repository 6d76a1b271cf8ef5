// Times: as text, and as numbers.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>

namespace cohabit {

inline int64_t nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// In UTC; `format` as for strftime.
inline std::string time_now(const char* format) {
  const std::time_t now = std::time(nullptr);
  struct tm parts{};
  char text[64];
  ::gmtime_r(&now, &parts);
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

// The time as it sorts, behind `begin`; with a number where that name is taken.
template <class IsTaken>
std::string name_by_time(const std::string& begin, IsTaken is_taken) {
  const std::string base = begin + time_now("%Y%m%d-%H%M%S");
  std::string name = base;
  for (int i = 2; is_taken(name); i++) name = base + "-" + std::to_string(i);
  return name;
}

}  // namespace cohabit
