// Paths as text: nothing here looks at a file system.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace cohabit {

// The directory part, without its slash unless it is the root; "" where the path has no slash.
inline std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return "";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// What follows the last slash; all of a path that has none.
inline std::string last_part(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// What stands before the first slash; all of a path that has none.
inline std::string_view first_part(std::string_view path) {
  return path.substr(0, path.find('/'));
}

// By text alone. A directory without a name has nothing below it.
inline bool is_below(std::string_view path, std::string_view directory) {
  return !directory.empty() && path.size() > directory.size() && path.starts_with(directory) &&
         path[directory.size()] == '/';
}

// A path of at most `max_depth` parts that stays below where it starts: relative, with no empty
// part, "." or "..", and without a NUL, which would cut it short in system calls.
inline bool stays_below(std::string_view path, size_t max_depth = SIZE_MAX) {
  size_t depth = 0;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == ".." || ++depth > max_depth) return false;
    begin = end + 1;
  }
  return path.find('\0') == path.npos;
}

// Whether it is absolute, with no empty part and none that is "." or "..".
inline bool is_normal(std::string_view path) {
  if (!path.starts_with('/')) return false;
  const auto ends = [path](size_t at) { return at >= path.size() || path[at] == '/'; };
  for (size_t slash = 0; slash != path.npos; slash = path.find('/', slash + 1)) {
    size_t at = slash + 1;
    for (int points = 0; points < 2 && at < path.size() && path[at] == '.'; points++) at++;
    if (ends(at)) return false;
  }
  return true;
}

// `path` below `directory`, without "//", "." and "..": a RECORD says "../../../bin/x" from
// site-packages. An absolute path is below nothing.
inline std::string join_normal(const std::string& directory, std::string_view path) {
  std::string whole;
  if (!path.starts_with('/')) {
    whole.reserve(directory.size() + 1 + path.size());
    whole.append(directory).append("/");
  }
  whole.append(path);
  if (is_normal(whole)) return whole;
  std::string result;
  for (size_t begin = 0; begin < whole.size();) {
    const size_t end = std::min(whole.find('/', begin), whole.size());
    const std::string_view part(whole.data() + begin, end - begin);
    if (part == "..") {
      result.erase(std::min(result.rfind('/'), result.size()));
    } else if (!part.empty() && part != ".") {
      result.append("/").append(part);
    }
    begin = end + 1;
  }
  return result;
}

}  // namespace cohabit
