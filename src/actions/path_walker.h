// Where paths lead, one component at a time, as the kernel follows them below a root.
#pragma once

#include <sys/stat.h>

#include <functional>
#include <string>
#include <unordered_map>

#include "base/tree.h"

namespace cohabit {

class PathWalker {
 public:
  struct Part {
    uint32_t mode = 0;  // st_mode; 0: it is not there
    FileId id;
    uint64_t size = 0;
    std::string target;  // of a symlink
    bool is_there() const { return mode != 0; }
    bool is_link() const { return S_ISLNK(mode); }
    bool is_directory() const { return S_ISDIR(mode); }
    bool is_file() const { return S_ISREG(mode); }
  };
  struct End {
    std::string place;  // without links; of what is not there: the first part that is missing
    Part part;
  };

  // `root` and `directory` as a Tree has them.
  PathWalker(std::string root, std::string directory)
      : root_(std::move(root)), directory_(std::move(directory)) {}

  // `visit` gets what there is on the way, links and the end included.
  using Visit = std::function<void(const std::string& place, const Part& part)>;
  End walk(const std::string& path, const Visit& visit = {});
  const Part& look(const std::string& place);

 private:
  std::string root_, directory_;
  std::unordered_map<std::string, Part> known_;
};

}  // namespace cohabit
