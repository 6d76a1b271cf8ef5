// Paths as text: nothing here looks at a file system.
#pragma once

#include <string>

namespace cohabit {

// The directory part, without its slash unless it is the root; "" where the path has no slash.
inline std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return "";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace cohabit
