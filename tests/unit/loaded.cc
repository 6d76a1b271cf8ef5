#include "loaded.h"

#include <link.h>

#include <climits>
#include <cstdlib>

std::set<std::string> really_loaded() {
  std::set<std::string> paths;
  const auto add = [](dl_phdr_info* info, size_t, void* data) {
    char path[PATH_MAX];
    if (info->dlpi_name[0] == '/' && realpath(info->dlpi_name, path))
      static_cast<std::set<std::string>*>(data)->insert(path);
    return 0;
  };
  dl_iterate_phdr(add, &paths);
  return paths;
}
