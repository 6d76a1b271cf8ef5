// The time of day as text.
#pragma once

#include <ctime>
#include <string>

namespace cohabit {

// In UTC; `format` as for strftime.
inline std::string time_now(const char* format) {
  const std::time_t now = std::time(nullptr);
  struct tm parts{};
  char text[64];
  ::gmtime_r(&now, &parts);
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

}  // namespace cohabit
