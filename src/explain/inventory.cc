#include "explain/inventory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/paths.h"

namespace cohabit::explain {
namespace {

std::string_view name_of(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

std::vector<std::string> library_path() {
  std::vector<std::string> directories;
  const char* value = std::getenv("LD_LIBRARY_PATH");
  std::string_view rest = value ? value : "";
  while (!rest.empty()) {
    const size_t end = std::min(rest.find_first_of(":;"), rest.size());
    if (end > 0) directories.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return directories;
}

class Collector {
 public:
  Collector(std::string_view prefix, const Tree& tree) : prefix_(prefix), tree_(tree) {}

  void add(const std::string& path, const std::string& owner) {
    if (!name_of(path).starts_with(prefix_)) return;
    const auto real = tree_.real_path(path);
    if (real && seen_.insert(*real).second) copies_.push_back({path, owner});
  }
  std::vector<Copy> take() { return std::move(copies_); }

 private:
  std::string_view prefix_;
  const Tree& tree_;
  std::set<std::string> seen_;
  std::vector<Copy> copies_;
};

}  // namespace

std::string_view stem_of(std::string_view library) {
  return library.substr(0, library.find(".so"));
}

std::vector<Copy> copies_of(std::string_view prefix, const EnvironmentCase& examined,
                            const Machine& machine) {
  Collector collector(prefix, examined.tree);
  for (const Distribution& distribution : examined.all())
    for (const std::string& path : distribution.native_files)
      collector.add(path, label(distribution));
  for (const std::string& directory : library_path())
    for (const std::string& name : examined.tree.list(directory))
      collector.add(fmt::format("{}/{}", directory, name), "");
  for (const LdCache::Entry& entry : machine.cache.entries())
    if (entry.path_readable) collector.add(std::string(entry.path), "");
  return collector.take();
}

}  // namespace cohabit::explain
