#include "facts/host/mounts.h"

#include <fstream>
#include <sstream>

#include "base/paths.h"

namespace cohabit {
namespace {

// Space, tab, line feed and backslash stand there as \\ and three octal digits.
std::string unescaped(const std::string& text) {
  std::string result;
  const auto digit = [&](size_t at) {
    return at < text.size() && text[at] >= '0' && text[at] <= '7' ? text[at] - '0' : -1;
  };
  for (size_t i = 0; i < text.size(); i++) {
    const int a = digit(i + 1), b = digit(i + 2), c = digit(i + 3);
    if (text[i] == '\\' && a >= 0 && b >= 0 && c >= 0) {
      result += static_cast<char>(64 * a + 8 * b + c);
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

}  // namespace

std::vector<std::string> mount_points_below(const std::string& directory) {
  std::vector<std::string> points;
  std::ifstream file("/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string field;
    for (int i = 0; i < 5 && fields >> field;) i++;  // the fifth: where
    const std::string point = unescaped(field);
    if (is_below(point, directory)) points.push_back(point);
  }
  return points;
}

}  // namespace cohabit
