// realpath(3) of many files, most of which stand in few directories: the links on the way to a
// directory are followed once.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

namespace cohabit {

class RealPaths {
 public:
  // Nothing: a part of the path does not exist, or cannot be looked at. `link`, if given: the text
  // of the symlink that the path itself is; empty: it is none.
  std::optional<std::string> of(const std::string& path, std::string* link = nullptr);

 private:
  std::unordered_map<std::string, std::optional<std::string>> directories_;
};

}  // namespace cohabit
